"""What PLOC adds to river: records a second, and time by the bare model's, on river's own Phishing stream."""

import itertools
import time

import numpy as np
import river
from river import datasets, evaluate, forest, linear_model, metrics, preprocessing, tree

from ploc.river import PLOCClassifier

MODELS = {
    "LogisticRegression": linear_model.LogisticRegression,
    "StandardScaler | LogisticRegression": lambda: (
        preprocessing.StandardScaler() | linear_model.LogisticRegression()
    ),
    "HoeffdingTree": tree.HoeffdingTreeClassifier,
    "AdaptiveRandomForest(10)": lambda: forest.ARFClassifier(n_models=10, seed=0),
}
ROUNDS = 5


def trained(make, records):
    model = make()
    for x, y in records:
        model.learn_one(x, y)
    return model


def answers(model, records):
    for x, _ in records:
        model.predict_proba_one(x)


def steps(model, records):
    wrapped = PLOCClassifier(model)
    for x, _ in records:
        wrapped.step_one(x)


def validation(model, records):
    evaluate.progressive_val_score(records, model, metrics.LogLoss())


def seconds(loop, *arguments):
    start = time.perf_counter()
    loop(*arguments)
    return time.perf_counter() - start


def main() -> None:
    records = list(datasets.Phishing())
    source, target = records[:600], records[600:]
    print(f"river {river.__version__}, {len(target)} records, ratios to the bare model, median of {ROUNDS}")
    print(f"{'':36s} {'records/s':>10s} {'step_one':>9s} {'frozen':>7s} {'learning':>9s}")
    for name, make in MODELS.items():
        model = trained(make, source)
        repeat = 1 if "10" in name else 5
        stream = list(itertools.chain.from_iterable([target] * repeat))
        rows = []
        for _ in range(ROUNDS):
            alone, stepped = seconds(answers, model, stream), seconds(steps, model, stream)
            bare = seconds(validation, trained(make, source), stream)
            frozen = seconds(validation, PLOCClassifier(model), stream)
            learning = seconds(validation, PLOCClassifier(trained(make, source), frozen=False), stream)
            rows.append((len(stream) / stepped, stepped / alone, frozen / bare, learning / bare))
        rate, *ratios = np.median(rows, axis=0)
        print(f"{name:36s} {rate:10,.0f} {ratios[0]:9.2f} {ratios[1]:7.2f} {ratios[2]:9.2f}")
    print("step_one: by the bare predict_proba_one; it answers and observes.")
    print("frozen, learning: progressive_val_score by the bare model's, which answers and learns;")
    print("frozen=True answers and observes, frozen=False answers, observes and learns.")


if __name__ == "__main__":
    main()
