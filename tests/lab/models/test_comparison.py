import numpy as np
import pytest
from rich.console import Console
from sklearn.metrics import f1_score, roc_auc_score

from ploc_lab import data, models
from ploc_lab.models import comparison
from ploc_lab.models.commands import TABULAR, here
from ploc_lab.report import paper


@pytest.fixture(scope="module")
def row(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLOC_WORK", str(tmp_path_factory.mktemp("work")))
        ds = data.load("rand_hie")
        found = models.train(ds, "tab_transformer", (1, 2))
        logits = [one.logits(ds, "ood_test") for one in found]
        y = ds.stream().open(logits[0])
        (ours,) = comparison.rows(["rand_hie"], ["tab_transformer"], (1, 2))
        yield ours, logits, y


def test_means_and_spread_are_those_of_the_seeds(row):
    ours, logits, y = row
    centred = [z - np.concatenate([[0], np.cumsum(z)[:-1] / np.arange(1, len(z))]) for z in logits]
    for which, streams in (("source", logits), ("ploc", centred)):
        by_seed = [(np.mean((z >= 0) == y), f1_score(y, z >= 0), roc_auc_score(y, z)) for z in streams]
        means, spread = np.mean(by_seed, axis=0), np.std(by_seed, axis=0, ddof=1)
        for metric, mean, sd in zip(("accuracy", "f1", "auroc"), means, spread, strict=True):
            assert getattr(getattr(ours.ours, metric), which) == pytest.approx(mean, abs=1e-12)
            assert getattr(getattr(ours.spread, metric), which) == pytest.approx(sd, abs=1e-12)


def test_a_data_set_that_is_not_the_papers_has_no_row_of_the_paper(row):
    assert row[0].paper is None
    heloc = comparison.Row("heloc", "mlp", row[0].ours, row[0].spread, paper.PER_DATASET["mlp"]["heloc"])
    text = comparison.markdown([row[0], heloc])
    assert len(text.splitlines()) == 2 + 2 + 3
    assert text.splitlines()[-1] == (
        "|  |  | paper | 0.512 -> 0.641 | 0.277 -> 0.677 | 0.684 -> 0.684 | 0.200 -> 0.047 |"
    )
    console = Console(width=120)
    with console.capture() as shown:
        console.print(comparison.table([heloc]))
    assert "0.512 -> 0.641" in shown.get()


def test_the_embedded_data_are_always_here():
    assert {"rand_hie", "rand_hie_health"} <= set(here())
    assert set(TABULAR) <= set(models.names())
