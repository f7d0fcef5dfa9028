"""The laws that hold across all rooms: labels have no place, and the core needs numpy alone."""

import inspect
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import ploc
from ploc import cli, frame, onnx, spark
from ploc.keyed import Keyed
from ploc.river import PLOCClassifier as River
from ploc.sklearn import PLOCClassifier as Sklearn
from ploc.stream import Filter
from ploc.tables import Score, Table
from ploc.torch import PLOCModule

LABELS = {"y", "ys", "label", "labels", "target", "targets", "y_true", "truth", "classes_true"}
KINDS = [kind for name, kind in vars(ploc.origin).items() if name in ploc.origin.__all__]
ADAPTING = [
    *(getattr(rule, verb) for rule in (ploc.PLOC, ploc.PLOCProb) for verb in ("observe", "step", "replay")),
    *(getattr(kind, verb) for kind in KINDS for verb in ("push", "trail")),
    ploc.deferred,
    frame.center,
    spark.center_stream,
    spark.Center.handleInputRows,
    Sklearn.replay,
    River.step_one,
    River.observe_one,
    PLOCModule.forward,
    PLOCModule.observe,
    onnx.bake,
    onnx.rule,
    Score,
    Filter,
    Keyed,
    cli.score,
    cli.stream,
]
# scikit-learn's `partial_fit` and river's `learn_one` have the place their hosts' API asks for; the hosts'
# own tests poison it.


@pytest.mark.parametrize("verb", ADAPTING, ids=lambda verb: verb.__qualname__)
def test_no_adapting_verb_has_a_place_for_labels(verb):
    assert not LABELS & set(inspect.signature(verb).parameters)


POISON = {"flipped": lambda y: 1 - y, "constant": lambda y: 0 * y, "absent": lambda y: [None] * len(y)}
Z = np.random.default_rng(0).normal(1.0, 2.0, 60)
Y = (np.random.default_rng(1).random(60) < 0.4).astype(int)


@pytest.mark.parametrize("poison", POISON)
def test_labels_that_lie_in_the_same_table_move_no_answer(tmp_path, poison):
    answers = []
    for y in (Y.tolist(), list(POISON[poison](Y))):
        rows = pl.DataFrame({"t": range(60), "z": Z, "y": y}, schema_overrides={"y": pl.Int64})
        rows.write_parquet(tmp_path / "in.parquet")
        Score(Keyed(), ["z"], "t").run(Table(tmp_path / "in.parquet"), Table(tmp_path / "out.parquet"))
        done = (
            frame.center(rows),
            frame.center(rows.lazy()).collect(),
            pl.read_parquet(tmp_path / "out.parquet"),
        )
        answers += [answered["ploc_proba"].to_list() for answered in done]
    assert all(answer == answers[0] for answer in answers)
    np.testing.assert_allclose(answers[0], ploc.PLOC().replay(Z), rtol=1e-14)


BLOCKED = """
import importlib.abc, sys
before = set(sys.modules)  # a system's own start-up, such as Debian's, may have brought its modules

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in {"numpy", "ploc"}:
            raise ModuleNotFoundError(f"blocked: {name}")

sys.meta_path.insert(0, Blocked())
import ploc
c = ploc.PLOC()
assert c.step(1.0) > 0.5
c.replay([1.0, 2.0])
assert ploc.PLOC.from_state(c.state()).shift == c.shift
ploc.PLOC(classes=3, origin=ploc.origin.Median()).replay([[0.0, 1.0, 2.0]])
ploc.deferred([1.0, 2.0])
ploc.metrics.evaluate([0.2, 0.9], [0, 1])
ploc.theory.drift_bound([0.0, 1.0], [0, 1])
ploc.links.from_proba([0.5])
from ploc import randhie
randhie.load()
tops = {name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)
print(sorted(top for top in tops if not top.startswith("_")))
"""


def test_the_core_works_where_numpy_is_all_there_is():
    done = subprocess.run([sys.executable, "-I", "-c", BLOCKED], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.strip() == "['numpy', 'ploc']"
