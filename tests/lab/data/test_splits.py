import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ploc_lab.data import splits


def cut(rows, share):
    """The cut as numpy alone does it: one seeded permutation, its head is the smaller part."""
    order = np.random.RandomState(264738).permutation(len(rows))
    head = int(np.ceil(share * len(rows)))
    return rows[order[head:]], rows[order[:head]]


@settings(deadline=None)
@given(st.integers(10, 400), st.integers(2, 400), st.randoms(use_true_random=False))
def test_the_parts_are_those_of_an_independent_cut(source, target, random):
    flags = [False] * source + [True] * target
    random.shuffle(flags)
    ood = np.array(flags)
    parts = splits.split(ood)

    train, rest = cut(np.flatnonzero(~ood), 0.2)
    validation, id_test = cut(rest, 0.5)
    ood_test, ood_validation = cut(np.flatnonzero(ood), 0.1)
    expected = (train, validation, id_test, ood_validation, ood_test)
    for name, rows in zip(splits.NAMES, expected, strict=True):
        np.testing.assert_array_equal(parts[name], rows)


@settings(deadline=None)
@given(st.lists(st.booleans(), min_size=30, max_size=200))
def test_every_row_is_in_one_part_and_on_its_own_side(flags):
    ood = np.array(flags)
    if ood.sum() < 2 or (~ood).sum() < 10:
        with pytest.raises(splits.TooFewRowsError, match="too few rows"):
            splits.split(ood)
        return
    parts = splits.split(ood)
    assert sorted(np.concatenate(list(parts.values()))) == list(range(len(ood)))
    assert not any(ood[parts[name]].any() for name in splits.SOURCE)
    assert ood[parts["ood_validation"]].all()
    assert ood[parts["ood_test"]].all()
