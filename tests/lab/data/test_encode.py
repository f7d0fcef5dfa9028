import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler

from ploc_lab.data.encode import encode
from ploc_lab.data.schema import Columns, WrongDataError

ALL = np.arange(4)


def test_a_table_small_enough_to_encode_by_hand():
    table = pl.DataFrame(
        {"flag": [1, 0, 1, 1], "kind": ["b", "a", "b", None], "age": [10, 30, 50, 20], "same": [7, 7, 7, 7]}
    )
    columns = Columns(numeric=("age", "same"), onehot=("kind",), passthrough=("flag",))
    x = encode(table, columns, train=np.array([0, 1]), order=np.array([3, 0, 1, 2]))
    # Train rows 0 and 1: mean 20, deviation 10. Categories by first appearance in all rows: b, a, nan.
    np.testing.assert_array_equal(
        x.rows(), [[0, 0, 0, 0, 1, 1], [-1, 0, 1, 0, 0, 1], [1, 0, 0, 1, 0, 0], [3, 0, 1, 0, 0, 1]]
    )
    assert x.columns == ("age", "same", "kind=b", "kind=a", "kind=nan", "flag")
    assert x.rows().dtype == np.float32


def test_rare_categories_share_the_last_column_also_those_that_train_never_saw():
    table = pl.DataFrame({"n": [0.0] * 6, "kind": ["x", "y", "x", "z", "x", "late"]})
    columns = Columns(numeric=("n",), onehot=("kind",), min_frequency=0.4)
    x = encode(table, columns, train=np.arange(5), order=np.arange(6))
    # Of five train rows x has 3 (kept), y and z 1 each, late none: the floor is 2.
    assert x.columns == ("n", "kind=x", "kind=infrequent")
    assert x.rows()[:, 1].tolist() == [1, 0, 1, 0, 1, 0]
    assert x.rows()[:, 2].tolist() == [0, 1, 0, 1, 0, 1]


def test_missing_numbers_are_bin_minus_one_where_bins_are_asked_for_and_refused_elsewhere():
    table = pl.DataFrame({"n": [1.0, 2.0, None, 4.0]})
    binned = encode(table, Columns(numeric=("n",), binned=True), ALL, ALL).rows()[:, 0]
    # Edges at 0, 20, .. 100 % of 1, 2, 4: 1, 1.4, 1.8, 2.4, 3.2, 4.
    assert binned.tolist() == [0, 2, -1, 4]
    with pytest.raises(WrongDataError, match=r"column n: 1 value\(s\) are missing.*row 2"):
        encode(table, Columns(numeric=("n",)), ALL, ALL)


def test_bins_that_train_leaves_empty_are_merged():
    table = pl.DataFrame({"n": [5, 5, 5, 9]})
    x = encode(table, Columns(numeric=("n",), binned=True), np.arange(4), np.array([0, 3]))
    # The quantiles are 5, 5, 5, 5, 6.6, 9: two bins are left.
    assert x.rows()[:, 0].tolist() == [0, 1]


@pytest.mark.filterwarnings("ignore:Bins whose width")
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([0.0, 0.05, 0.3]))
def test_it_agrees_with_scikit_learn(seed, binned, floor):
    rng = np.random.default_rng(seed)
    n = 120
    table = pl.DataFrame(
        {
            "a": rng.normal(50, 20, n).astype(np.float32),
            "b": rng.integers(0, 6, n),
            "u": rng.choice(list("pqrstuvw"), n),
            "v": rng.choice(["yes", "no"], n),
            "w": rng.integers(0, 2, n),
        }
    )
    order = rng.permutation(n)
    train = order[:80]
    columns = Columns(("a", "b"), ("u", "v"), ("w",), binned=binned, min_frequency=floor)
    x = encode(table, columns, train, order).rows()

    frame = {name: table[name].to_numpy() for name in table.columns}
    rows = np.array([list(row) for row in zip(*frame.values(), strict=True)], dtype=object)
    seen = [list(dict.fromkeys(frame[name])) for name in ("u", "v")]
    numeric = (
        KBinsDiscretizer(5, encode="ordinal", strategy="quantile", quantile_method="linear")
        if binned
        else StandardScaler()
    )
    peer = ColumnTransformer(
        [
            ("n", numeric, [0, 1]),
            ("c", OneHotEncoder(categories=seen, min_frequency=floor or None), [2, 3]),
            ("p", "passthrough", [4]),
        ],
        sparse_threshold=0,
    )
    peer.fit(rows[train])
    np.testing.assert_allclose(x, peer.transform(rows[order]).astype(np.float64), atol=1e-5)


def test_rows_are_assembled_for_any_index():
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"n": rng.normal(size=50), "k": rng.integers(0, 400, 50)})
    x = encode(table, Columns(numeric=("n",), onehot=("k",)), np.arange(40), rng.permutation(50))
    full = x.rows()
    np.testing.assert_array_equal(x.rows(slice(5, 9)), full[5:9])
    np.testing.assert_array_equal(x.rows(np.array([7, 0, 7])), full[[7, 0, 7]])
    np.testing.assert_array_equal(x[10:30].rows(slice(2, 4)), full[12:14])
    assert x.rows(slice(0, 0)).shape == (0, x.d)
    with pytest.raises(TypeError, match="a slice or an array of positions, got 3"):
        x.rows(3)
    assert (full[:, 1:].sum(axis=1) == 1).all()


def test_a_table_is_kept_in_bytes_a_block_not_in_floats_a_category():
    n = 1_000
    table = pl.DataFrame({"n": np.zeros(n), **{f"k{j}": np.arange(n) % 60 for j in range(14)}})
    columns = Columns(numeric=("n",), onehot=tuple(f"k{j}" for j in range(14)))
    x = encode(table, columns, np.arange(n), np.arange(n))
    assert x.d == 1 + 14 * 60
    assert x.numeric.nbytes + x.codes.nbytes + x.passthrough.nbytes == n * (4 + 14)
