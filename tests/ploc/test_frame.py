"""One suite over every local engine: `PLOC.replay`'s numbers, the same refusals, the frame's own kind."""

import math
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ploc import PLOC, deferred, links
from ploc.frame import center

DUCK = duckdb.connect()
MAKE = {
    "pandas": lambda rows: rows.to_pandas().set_index(pd.Index([7] * len(rows))),
    "pandas-arrow": lambda rows: rows.to_pandas(use_pyarrow_extension_array=True),
    "polars": lambda rows: rows,
    "polars-lazy": lambda rows: rows.lazy(),
    "pyarrow": lambda rows: rows.to_arrow(),
    "duckdb": lambda rows: DUCK.from_arrow(rows.to_arrow()),
}
EAGER = ["pandas", "pandas-arrow", "polars", "pyarrow"]
REFUSALS = (ValueError, duckdb.InvalidInputException, pl.exceptions.ComputeError)


def read(frame):
    """Any frame as polars; a relation in the order of its column `id`."""
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    if isinstance(frame, duckdb.DuckDBPyRelation):
        return frame.pl().sort("id")
    if isinstance(frame, pd.DataFrame):
        return pl.from_pandas(frame.reset_index(drop=True))
    return pl.from_arrow(frame) if isinstance(frame, pa.Table) else frame


@pytest.fixture(params=list(MAKE))
def make(request):
    return MAKE[request.param]


def table(seed=0, n=120):
    """Three tenants' rows, shuffled: nothing stands in the order of its stream."""
    rng = np.random.default_rng(seed)
    rows = pl.DataFrame(
        {
            "id": np.arange(n),
            "tenant": rng.choice(["acme", "born", "c"], n),
            "t": rng.permutation(n),
            "z": rng.normal(1.0, 2.0, n),
            "z1": rng.normal(0.0, 1.0, n),
            "z2": rng.normal(-2.0, 3.0, n),
            "note": [f"row {i}" for i in range(n)],
        }
    )
    three = links.softmax(rows.select("z", "z1", "z2").to_numpy())
    return rows.with_columns(
        p=pl.Series(links.sigmoid(rows["z"].to_numpy())),
        q=1.0 - pl.Series(links.sigmoid(rows["z"].to_numpy())),
        **{f"p{k}": pl.Series(three[:, k]) for k in range(3)},
    )


def expected(rows, logits, by, *, anchor=0.0, whole=False):
    """Row by row in Python, exact sums: {id: (probabilities, shifts, count)}."""
    answers = {}
    seen = {}
    for row in rows.sort("t").iter_rows(named=True):
        seen.setdefault(tuple(row[name] for name in by), []).append(row)
    for stream in seen.values():
        for i, row in enumerate(stream):
            past = stream if whole else stream[:i]
            shifts = [math.fsum(r[z] for r in past) / len(past) - anchor if past else 0.0 for z in logits]
            centred = [row[z] - shift for z, shift in zip(logits, shifts, strict=True)]
            exps = [
                math.exp(c - max(0.0, *centred)) for c in (centred if len(centred) > 1 else [0.0, *centred])
            ]
            probs = [e / sum(exps) for e in exps]
            answers[row["id"]] = (probs if len(centred) > 1 else probs[1:], shifts, len(past))
    return [answers[i] for i in rows["id"]]


def check(got, want, answers, shifts):
    got_answers = got.select(answers).to_numpy()
    assert got_answers == pytest.approx(np.array([w[0] for w in want]).reshape(got_answers.shape), abs=1e-12)
    got_shifts = got.select(shifts).to_numpy()
    assert got_shifts == pytest.approx(
        np.array([w[1] for w in want]).reshape(got_shifts.shape), rel=1e-12, abs=1e-12
    )
    assert got["ploc_count"].to_list() == [w[2] for w in want]


ONE = (["ploc_proba"], ["ploc_shift"])
THREE = ([f"ploc_proba_{z}" for z in ("z", "z1", "z2")], [f"ploc_shift_{z}" for z in ("z", "z1", "z2")])


@pytest.mark.parametrize("whole", [False, True], ids=["prequential", "deferred"])
@pytest.mark.parametrize("by", [(), ("tenant",)], ids=["one", "keyed"])
def test_the_rule_by_hand(make, by, whole):
    rows = table()
    got = read(center(make(rows), "z", by=by, deferred=whole, anchor=0.25))
    check(got, expected(rows, ["z"], by, anchor=0.25, whole=whole), *ONE)
    got = read(center(make(rows), ["z", "z1", "z2"], by=by, deferred=whole))
    check(got, expected(rows, ["z", "z1", "z2"], by, whole=whole), *THREE)
    assert got.select(rows.columns).equals(rows)


@given(data=st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_small_stream(make, data):
    n = data.draw(st.integers(0, 8))
    rows = pl.DataFrame(
        {
            "id": range(n),
            "tenant": data.draw(st.lists(st.sampled_from("ab"), min_size=n, max_size=n)),
            "t": data.draw(st.permutations(range(n))),
            "z": data.draw(st.lists(st.floats(-1e3, 1e3), min_size=n, max_size=n)),
        },
        schema={"id": pl.Int64, "tenant": pl.String, "t": pl.Int64, "z": pl.Float64},
    )
    by = data.draw(st.sampled_from([(), ("tenant",)]))
    got = read(center(make(rows), by=by))
    assert got.schema["ploc_proba"] == got.schema["ploc_shift"] == pl.Float64
    assert got.schema["ploc_count"] == pl.Int64
    check(got, expected(rows, ["z"], by), *ONE)


@pytest.mark.parametrize("engine", [*EAGER, "polars-lazy"])
def test_local_frames_agree_with_replay_to_the_last_bit(engine):
    rows = table().sort("t")
    frame = MAKE[engine](rows)
    z, Z = rows["z"].to_numpy(), rows.select("z", "z1", "z2").to_numpy()
    assert np.array_equal(read(center(frame))["ploc_proba"], PLOC().replay(z))
    got = read(center(frame, ["z", "z1", "z2"], anchor=[1.0, 0.0, 2.0])).select(THREE[0]).to_numpy()
    assert np.array_equal(got, PLOC(3, anchor=[1.0, 0.0, 2.0]).replay(Z))
    probs, mu = deferred(z)
    got = read(center(frame, deferred=True))
    assert np.array_equal(got["ploc_proba"], probs)
    assert got["ploc_shift"].unique().to_list() == [mu]


@pytest.mark.parametrize("columns", ["z", ["z", "z1"]], ids=str)
def test_streams_of_every_length_agree_with_replay_to_the_last_bit(columns):
    lengths = [1, 2, 3, 1023, 1024, 1025, 4, 1, 2048, 70_000]  # the last runs over a block of the mean
    rng = np.random.default_rng(3)
    rows = pl.DataFrame({"tenant": np.repeat(np.arange(len(lengths)), lengths)}).with_columns(
        t=pl.int_range(pl.len()),
        z=rng.normal(3.0, 5.0, sum(lengths)).astype(np.float32),
        z1=rng.normal(0.0, 1.0, sum(lengths)),
    )
    answers = ["ploc_proba"] if columns == "z" else ["ploc_proba_z", "ploc_proba_z1"]
    once, whole = (
        center(rows.sample(fraction=1.0, shuffle=True, seed=1), columns, by="tenant", deferred=d).sort("t")
        for d in (False, True)
    )
    for tenant, stream in rows.group_by("tenant"):
        mine = pl.col("tenant") == tenant[0]
        Z = stream.select(columns).to_numpy().astype(np.float64)
        Z = Z[:, 0] if columns == "z" else Z
        probs = PLOC(None if columns == "z" else 2).replay(Z)
        assert np.array_equal(once.filter(mine).select(answers).to_numpy().reshape(probs.shape), probs)
        # A deferred stream needs no order, and its sums take the rows as they stand.
        gap = whole.filter(mine).select(answers).to_numpy().reshape(probs.shape) - deferred(Z)[0]
        assert np.abs(gap).max() < 1e-12


def test_probabilities_are_asked_for_by_name(make):
    rows = table()
    from_logits = expected(rows, ["z"], ())
    for proba in ("p", ["q", "p"]):
        got = read(center(make(rows), proba=proba))
        assert got["ploc_proba"].to_numpy() == pytest.approx([w[0][0] for w in from_logits], abs=1e-9)
    got = (
        read(center(make(rows), proba=["p0", "p1", "p2"])).select("ploc_proba_p0", "ploc_proba_p1").to_numpy()
    )
    want = [w[0][:2] for w in expected(rows, ["z", "z1", "z2"], ())]
    assert got == pytest.approx(np.array(want), abs=1e-9)
    sure = pl.DataFrame({"id": [0, 1], "t": [0, 1], "p": [1.0, 0.0]})
    got = read(center(make(sure), proba="p", clip=1e-3))
    assert got["ploc_shift"].to_list() == pytest.approx([0.0, math.log(999.0)], abs=1e-12)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("z", math.nan, "nan|null"),  # a NaN of classic pandas is its null
        ("z", math.inf, "inf"),
        ("z", -1e300, "-1e"),
        ("z", None, "null|None"),
        ("t", None, "t' .*is"),
        ("t", math.nan, "t' .*is"),
        ("tenant", None, "tenant' .*is"),
        ("t", 5.0, "tie.* t = 5"),
    ],
)
@pytest.mark.parametrize("whole", [False, True], ids=["prequential", "deferred"])
def test_a_bad_row_is_refused_with_its_place(make, column, value, words, whole):
    n = 9
    t, z, tenant = [float(i) for i in range(n)], [0.5] * n, ["a"] * n
    {"t": t, "z": z, "tenant": tenant}[column][3] = value
    rows = pl.DataFrame({"id": range(n), "t": t, "z": z, "tenant": tenant})
    frame = make(rows)
    if whole and column == "t":
        assert read(center(frame, by="tenant", deferred=True))["ploc_count"].to_list() == [n] * n
        return
    with pytest.raises(REFUSALS, match=f"(?i){words}"):
        read(center(frame, by="tenant", deferred=whole))
    assert read(frame).equals(read(make(rows)), null_equal=True)


@pytest.mark.parametrize(("p", "q"), [(1.5, 0.5), (-0.1, 0.5), (math.nan, 0.5), (None, 0.5), (0.9, 0.3)])
def test_what_is_no_probability_is_refused(make, p, q):
    rows = pl.DataFrame({"id": [0, 1], "t": [0, 1], "p": [0.5, p], "q": [0.5, q]})
    with pytest.raises(REFUSALS, match=r"(?i)probabilit"):
        read(center(make(rows), proba=["p", "q"]))
    if p != 0.9:
        with pytest.raises(REFUSALS, match=r"(?i)probabilit"):
            read(center(make(rows), proba="p"))


def test_two_rows_that_tie_need_a_further_column(make):
    rows = pl.DataFrame({"id": [0, 1, 2], "t": [1, 1, 0], "n": [2, 1, 3], "z": [1.0, 2.0, 3.0]})
    with pytest.raises(REFUSALS, match="tie"):
        read(center(make(rows)))
    assert read(center(make(rows), order_by=["t", "n"]))["ploc_shift"].to_list() == [2.5, 3.0, 0.0]
    assert read(center(make(rows), by="n"))["ploc_count"].to_list() == [0, 0, 0]


def test_the_order_may_be_any_type_that_sorts(make):
    start = datetime(2024, 2, 28, tzinfo=UTC)
    rows = pl.DataFrame(
        {
            "id": range(4),
            "when": [start + timedelta(days=d) for d in (3, 0, 2, 1)],
            "name": ["d", "a", "c", "b"],
            "z": np.array([4, 1, 3, 2], dtype=np.float32),
        }
    )
    for order in ("when", "name", ["when", "name"]):
        assert read(center(make(rows), order_by=order))["ploc_count"].to_list() == [3, 0, 2, 1]


def test_keys_may_be_several_columns(make):
    rows = table().with_columns(shop=pl.col("id") % 2)
    got = read(center(make(rows), by=["tenant", "shop"]))
    check(got, expected(rows, ["z"], ("tenant", "shop")), *ONE)


def test_names_may_be_anything(make):
    odd = {"z": 'a "logit" of `mine`', "t": "a.t", "tenant": "the tenant's"}
    got = read(center(make(table().rename(odd)), odd["z"], by=odd["tenant"], order_by=odd["t"]))
    check(got, expected(table(), ["z"], ("tenant",)), *ONE)


def test_the_callers_own_kind_comes_back(make):
    frame = make(table())
    assert type(center(frame)) is type(frame)
    wrapped = center(nw.from_native(frame))
    assert isinstance(wrapped, (nw.DataFrame, nw.LazyFrame))


def test_pandas_keeps_its_index():
    frame = MAKE["pandas"](table())
    assert center(frame).index.tolist() == [7] * 120


@pytest.mark.parametrize("engine", ["polars-lazy", "duckdb"])
def test_a_filter_afterwards_hides_rows_and_changes_no_answer(engine):
    rows = table()
    lazy = nw.from_native(center(MAKE[engine](rows)))
    late = read(lazy.filter(nw.col("t") >= 100).to_native())
    whole = center(rows).filter(pl.col("t") >= 100)
    assert late["ploc_count"].to_list() == whole["ploc_count"].to_list()
    assert late["ploc_proba"].to_numpy() == pytest.approx(whole["ploc_proba"].to_numpy(), abs=1e-12)
    few = read(nw.from_native(center(MAKE[engine](rows), deferred=True)).head(3).to_native())
    assert few["ploc_count"].to_list() == [120] * 3
    bad = rows.with_columns(z=pl.when(pl.col("t") == 3).then(math.nan).otherwise(pl.col("z")))
    lazy = nw.from_native(center(MAKE[engine](bad)))
    with pytest.raises(REFUSALS, match=r"(?i)nan"):  # the bad row is hidden, its part in the sums is not
        read(lazy.filter(nw.col("t") >= 100).to_native())


@pytest.mark.parametrize("engine", ["polars-lazy", "duckdb"])
def test_lazy_frames_run_nothing(engine):
    bad = pl.DataFrame({"id": [0], "t": [0], "z": [math.nan]})
    lazy = center(MAKE[engine](bad))
    with pytest.raises(REFUSALS, match=r"(?i)nan"):
        read(lazy)


def test_polars_reads_only_the_columns_it_needs(tmp_path):
    table().write_parquet(tmp_path / "rows.parquet")
    plan = center(pl.scan_parquet(tmp_path / "rows.parquet")).select("ploc_proba").explain()
    assert "PROJECT 2/" in plan


def test_no_order_by_takes_the_rows_as_they_stand():
    rows = table()
    for engine in (*EAGER, "polars-lazy"):
        got = read(center(MAKE[engine](rows), order_by=None))
        assert np.array_equal(got["ploc_proba"], PLOC().replay(rows["z"].to_numpy()))
        got = read(center(MAKE[engine](rows), order_by=None, by="tenant"))
        assert got.sort("id")["ploc_count"].to_list() == (pl.int_range(pl.len()).over("tenant")).pipe(
            lambda count: rows.select(count).to_series().to_list()
        )
    with pytest.raises(ValueError, match="order_by="):
        center(MAKE["duckdb"](rows), order_by=None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"logit": "zed"}, "no column 'zed' .*it has 'id', 'tenant'"),
        ({"order_by": "time"}, "no column 'time'"),
        ({"by": "shop"}, "no column 'shop'"),
        ({"logit": "note"}, "'note' is String"),
        ({"logit": "z", "proba": "p"}, "the one or the other"),
        ({"logit": ["z", "z"]}, "each once"),
        ({"logit": []}, "name one"),
        ({"anchor": math.nan}, "anchor"),
        ({"anchor": [1.0, 2.0]}, "anchor"),
        ({"proba": "p", "clip": 0.5}, "clip"),
        ({"blocks": 0}, "blocks"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_runs(make, arguments, words):
    with pytest.raises((ValueError, TypeError), match=words):
        center(make(table()), **arguments)


def test_columns_that_are_there_already_are_not_overwritten(make):
    rows = table().rename({"note": "PLOC_shift"})
    with pytest.raises(ValueError, match="'PLOC_shift' is in the frame already"):
        center(make(rows))
    assert "own_proba" in read(center(make(rows), prefix="own_")).columns


def test_pandas_columns_whose_names_are_numbers_stay_as_they_are():
    rows = pd.DataFrame({0: [1, 2], "t": [2, 1], "z": [0.5, 1.0]})
    found = center(rows, order_by="t")
    assert found.columns.tolist() == [0, "t", "z", "ploc_proba", "ploc_shift", "ploc_count"]
    assert found["ploc_shift"].tolist() == [1.0, 0.0]


def test_what_is_no_frame_is_refused():
    with pytest.raises(TypeError, match=r"ndarray; for an array use ploc\.PLOC\(\)\.replay"):
        center(np.zeros(3))


def test_importing_it_brings_no_engine():
    engines = {"pandas", "polars", "pyarrow", "duckdb", "pyspark"}
    code = f"import sys, ploc.frame; print(*{engines} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []
