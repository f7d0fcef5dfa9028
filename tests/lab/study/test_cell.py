import dataclasses

import pytest

from ploc_lab.study import cell as cells
from ploc_lab.study.cell import Cell, Draw, Facts, answer_key, key

CELL = Cell(dataset="heloc", backbone="mlp", method="ftat", seeds=(0, 1))
FACTS = Facts(data="d", checkpoints={0: "a", 1: "b"}, network="n", rows=10)

CHANGES = {
    "dataset": "rand_hie",
    "backbone": "tab_transformer",
    "method": "source",
    "seeds": (0,),
    "batch": 2,
    "limit": 100,
    "order": "time",
    "order_seed": 1,
    "draw": Draw("prior", 0, 0.5),
    "options": (("smoothing", 0.2),),
    "recipe": (("limit", 100),),
    "measure": "propositions",
}


def test_nothing_changed_is_the_same_cell():
    again = Cell(dataset="heloc", backbone="mlp", method="ftat", seeds=(0, 1))
    facts = Facts(data="d", checkpoints={1: "b", 0: "a"}, network="n", rows=99)
    assert key(again, facts) == key(CELL, FACTS)


def test_the_changes_below_are_all_there_are():
    assert set(CHANGES) == {field.name for field in dataclasses.fields(Cell)}


@pytest.mark.parametrize("field", CHANGES)
def test_any_other_question_is_another_cell(field):
    other = CELL.but(**{field: CHANGES[field]})
    assert key(other, FACTS) != key(CELL, FACTS)
    assert other.id != CELL.id


@pytest.mark.parametrize(
    "facts",
    [
        dataclasses.replace(FACTS, data="other rows"),
        dataclasses.replace(FACTS, checkpoints={0: "a", 1: "other weights"}),
        dataclasses.replace(FACTS, checkpoints={0: "b", 1: "a"}),
        dataclasses.replace(FACTS, network="other code"),
    ],
)
def test_other_ground_is_another_cell_of_the_same_question(facts):
    assert key(CELL, facts) != key(CELL, FACTS)


def test_a_checkpoint_of_another_seed_does_not_count():
    assert key(CELL, dataclasses.replace(FACTS, checkpoints={0: "a", 1: "b", 2: "c"})) == key(CELL, FACTS)


def test_other_code_and_other_versions_are_other_cells(monkeypatch):
    before = key(CELL, FACTS)
    with monkeypatch.context() as patch:
        patch.setattr(cells, "_method_code", lambda name: f"other code of {name}")
        assert key(CELL, FACTS) != before
    with monkeypatch.context() as patch:
        patch.setattr(cells, "_versions", lambda: ("numpy 99",))
        assert key(CELL, FACTS) != before
    assert key(CELL, FACTS) == before


def test_an_option_of_the_registry_counts(monkeypatch):
    before = key(CELL, FACTS)
    monkeypatch.setattr(cells, "resolved", lambda _: {"lr": 1.0})
    assert key(CELL, FACTS) != before


def test_the_evaluation_decides_the_result_but_not_the_answers(monkeypatch):
    result, answers = key(CELL, FACTS), answer_key(CELL, FACTS)
    original = cells.digest
    monkeypatch.setattr(
        cells, "digest", lambda *names: "other" if names == ("ploc_lab.study.evaluate",) else original(*names)
    )
    assert key(CELL, FACTS) != result
    assert answer_key(CELL, FACTS) == answers


def test_the_measure_does_not_decide_the_answers():
    other = CELL.but(measure="propositions")
    assert answer_key(other, FACTS) == answer_key(CELL, FACTS)


def test_a_missing_checkpoint_is_named():
    with pytest.raises(ValueError, match=r"heloc/mlp for seeds \[1\]"):
        key(CELL, dataclasses.replace(FACTS, checkpoints={0: "a"}))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ""),
        ({"order": "time"}, "time"),
        ({"order": "permuted", "order_seed": 3}, "permuted=3"),
        ({"draw": Draw("prior", 2, 0.1)}, "prior=0.1 sample=2"),
        ({"options": (("lr", 0.001),), "measure": "cost"}, "lr=0.001, cost"),
    ],
)
def test_a_variant_says_what_differs_from_the_plain_protocol(changes, words):
    assert CELL.but(**changes).variant == words


def test_the_code_that_draws_streams_and_plays_cells_counts(monkeypatch):
    before = answer_key(CELL, FACTS)
    assert set(cells.PLAYS) == {"ploc_lab.data.dataset", "ploc_lab.data.stream", "ploc_lab.study.work"}
    monkeypatch.setattr(cells, "own", lambda *names: f"other code of {names}")
    assert answer_key(CELL, FACTS) != before
