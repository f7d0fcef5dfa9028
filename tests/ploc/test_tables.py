import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from ploc import PLOC, deferred, frame, links
from ploc.keyed import Keyed
from ploc.tables import BATCH, Score, Table, stream_of

rng = np.random.default_rng(7)
N = 500
ROWS = pl.DataFrame(
    {
        "id": [f"{i:04d}" for i in range(N)],
        "t": rng.permutation(N),
        "tenant": rng.choice(["a", "b", "c"], N),
        "z": rng.normal(1.0, 2.0, N),
        "note": [None if i % 7 else 'a "quoted", one' for i in range(N)],
    }
)
WRITE = {
    "csv": pl.DataFrame.write_csv,
    "tsv": lambda df, path: df.write_csv(path, separator="\t"),
    "parquet": pl.DataFrame.write_parquet,
    "ndjson": pl.DataFrame.write_ndjson,
}
READ = {
    "csv": lambda path: pl.read_csv(path, schema_overrides={"id": pl.String}),
    "tsv": lambda path: pl.read_csv(path, separator="\t", schema_overrides={"id": pl.String}),
    "parquet": pl.read_parquet,
    "ndjson": pl.read_ndjson,
}


def score(
    folder, rows: pl.DataFrame, keyed=None, *, source="parquet", target="parquet", logit=("z",), **options
):
    WRITE[source](rows, folder / f"in.{source}")
    run = Score(keyed or Keyed(by=options.pop("by", None)), list(logit), **options)
    run.run(Table(folder / f"in.{source}"), Table(folder / f"out.{target}"))
    return READ[target](folder / f"out.{target}")


@pytest.mark.parametrize("source", WRITE)
@pytest.mark.parametrize("target", WRITE)
@pytest.mark.parametrize(
    "options",
    [{}, {"order_by": "t"}, {"by": "tenant", "order_by": "t"}, {"by": "tenant", "deferred": True}],
    ids=["file order", "by time", "keyed by time", "keyed deferred"],
)
def test_every_format_gives_what_frame_center_gives(tmp_path, source, target, options):
    out = score(tmp_path, ROWS, source=source, target=target, **dict(options))
    expected = frame.center(ROWS, logit="z", **({"order_by": None} | options))
    added = ["ploc_proba", "ploc_shift", "ploc_count"]
    assert_frame_equal(out.select(added), expected.select(added), check_exact=True)
    assert out["z"].to_list() == ROWS["z"].to_list()
    assert out["note"].to_list() == ROWS["note"].to_list()


@pytest.mark.parametrize("anchor", [0.0, 0.7])
@pytest.mark.parametrize("options", [{}, {"deferred": True}], ids=["prequential", "deferred"])
@pytest.mark.parametrize("names", [["z"], ["z0", "z1", "z2"]], ids=["one", "three"])
def test_the_shift_is_the_one_that_was_used_to_the_last_bit(tmp_path, names, options, anchor):
    z = [0.1, 0.2, 1e9, 1e9, 1e9, 0.3, *rng.normal(size=2 * BATCH)]  # beside 1e9, z - (z - 0.15) is not 0.15
    rows = pl.DataFrame({name: np.multiply(z, k) for k, name in enumerate(names, 1)})
    out = score(tmp_path, rows, Keyed(max(2, len(names)), anchor), logit=names, **options)
    expected = frame.center(rows, names, order_by=None, anchor=anchor, **options)
    assert_frame_equal(out, expected, check_exact=True)


def test_csv_cells_come_back_as_they_were_written(tmp_path):
    (tmp_path / "in.csv").write_text('id,z,x\n007,1.50,"a,b"\n008,-2,\n009,"3e0",""\n')
    Score(Keyed(), ["z"]).run(Table(tmp_path / "in.csv"), Table(tmp_path / "out.csv"))
    head, *lines = (tmp_path / "out.csv").read_text().splitlines()
    assert head == "id,z,x,ploc_proba,ploc_shift,ploc_count"
    assert [line.split(",0.")[0] for line in lines] == ['007,1.50,"a,b"', "008,-2,", '009,3e0,""']


@pytest.mark.parametrize(
    ("cells", "typed"),
    [
        (["0", "-2", "", "9223372036854775807"], [0, -2, None, 2**63 - 1]),
        (["1.5", "", "2e3", "-1e-05", "3"], [1.5, None, 2000.0, -1e-05, 3.0]),
        (["0.30000000000000004", "-0.0", "1.0E300"], [0.30000000000000004, -0.0, 1e300]),
        *(
            (["1", cell], None)
            for cell in (
                "007",
                "+5",
                "1.10",
                ".5",
                "1.",
                " 1",
                "1_0",
                "0x1",
                "nan",
                "NaN",
                "inf",
                "-inf",
                "x",
            )
        ),
        (["1", "12345678901234567891"], None),  # beyond 64 bits
        (["1.5", "9007199254740993"], None),  # beyond a float's 53
        (["1", "0.123456789012345678"], None),
        (["1", "1e999"], None),
        (["1", "1e-999"], None),
        (["", ""], None),
    ],
)
@pytest.mark.parametrize("target", ["parquet", "ndjson"])
def test_csv_columns_become_numbers_only_where_they_lose_nothing(tmp_path, cells, typed, target):
    rows = pl.DataFrame(
        {"c": [cell or None for cell in cells], "z": ["0.50", "+1", "2", "3", "4"][: len(cells)]}
    )
    out = score(tmp_path, rows, source="csv", target=target)
    same = out["c"].to_list(), [str(value) for value in out["c"]]
    expected = typed or rows["c"].to_list()
    assert same == (expected, [str(value) for value in expected])
    assert out["z"].to_list() == [0.5, 1.0, 2.0, 3.0, 4.0][: len(cells)]  # said to be numbers


@pytest.mark.parametrize("target", WRITE)
def test_a_key_is_its_text_whatever_the_answers_are_written_to(tmp_path, target):
    rows = pl.DataFrame({"k": ["1.5", "+5", "5", "007", "nan", "1.5"], "z": [1.0] * 6})
    keyed = Keyed(by="k")
    out = score(tmp_path, rows, keyed, source="csv", target=target)
    assert list(keyed.centers) == ["1.5", "+5", "5", "007", "nan"]
    assert out["ploc_count"].to_list() == [0, 0, 0, 0, 0, 1]
    if target in ("parquet", "ndjson"):
        assert out["k"].to_list() == rows["k"].to_list()


@pytest.mark.parametrize("header", ["a,a,z", "z,a,z", "a,,,z", '"a",a_duplicated_0,z,a_duplicated_0'])
def test_two_columns_of_one_name_are_refused(tmp_path, header):
    (tmp_path / "in.csv").write_text(f"{header}\n{','.join('1' * len(header.split(',')))}\n")
    with pytest.raises(ValueError, match=r"in\.csv has two columns '\w*'; give each a name of its own"):
        Score(Keyed(), ["z"]).run(Table(tmp_path / "in.csv"), Table(tmp_path / "out.csv"))
    assert [p.name for p in tmp_path.iterdir()] == ["in.csv"]
    (tmp_path / "in.csv").write_text("a,a_duplicated_0,z\n1,2,3\n")  # a name like any other
    assert Table(tmp_path / "in.csv").schema().names() == ["a", "a_duplicated_0", "z"]


@pytest.mark.parametrize("name", ["rows[1]", "*", "row?1", "x{1,2}", "~"])
@pytest.mark.parametrize("kind", WRITE)
def test_a_file_name_is_no_pattern(tmp_path, monkeypatch, name, kind):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).mkdir()
    WRITE[kind](pl.DataFrame({"z": [7.0]}), tmp_path / name / f"rows1.{kind}")
    with (tmp_path / name / f"{name}.{kind}").open("wb") as file:
        WRITE[kind](pl.DataFrame({"z": [1.0, 2.0]}), file)
    source = Table(f"{name}/{name}.{kind}")
    assert Score(Keyed(), ["z"]).run(source, Table(f"out.{kind}")) == 2
    assert READ[kind](f"out.{kind}")["z"].to_list() == [1.0, 2.0]
    z, *_ = stream_of(source, "z", proba=False, label=None, by=None, order_by=None)
    assert z.tolist() == [1.0, 2.0]


@given(
    z=st.lists(st.floats(-100, 100), min_size=1, max_size=60),
    data=st.data(),
    anchor=st.sampled_from([0.0, 0.7]),
)
@settings(max_examples=20, deadline=None)
def test_keys_are_streams_of_their_own_and_ties_keep_the_order_of_the_file(tmp_path_factory, z, data, anchor):
    folder = tmp_path_factory.mktemp("k")
    n = len(z)
    k = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    t = data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    out = score(folder, pl.DataFrame({"z": z, "k": k, "t": t}), Keyed(by="k", anchor=anchor), order_by="t")
    order = np.lexsort((np.arange(n), t))
    for key in set(k):
        rows = [i for i in order if k[i] == key]
        expected = PLOC(anchor=anchor).replay([z[i] for i in rows])
        assert out["ploc_proba"].to_numpy()[rows].tolist() == expected.tolist()


def test_many_pieces_are_one_stream(tmp_path):
    z = rng.normal(size=2 * BATCH + 17)
    out = score(tmp_path, pl.DataFrame({"z": z}))
    assert out["ploc_proba"].to_list() == PLOC().replay(z).tolist()
    probs, mu = deferred(z)
    out = score(tmp_path, pl.DataFrame({"z": z}), deferred=True)
    assert out["ploc_proba"].to_list() == probs.tolist()
    assert set(out["ploc_shift"]) == {mu}


def test_two_logits_k_logits_and_probabilities(tmp_path):
    Z = rng.normal(size=(50, 3))
    rows = pl.DataFrame(Z, schema=["z0", "z1", "z2"])
    out = score(tmp_path, rows, Keyed(classes=3), logit=("z0", "z1", "z2"))
    answered = out.select(f"ploc_proba_z{k}" for k in range(3)).to_numpy()
    assert np.array_equal(answered, PLOC(classes=3).replay(Z))
    shift = out.select(f"ploc_shift_z{k}" for k in range(3)).to_numpy()
    assert shift[-1] == pytest.approx(Z[:-1].mean(axis=0))

    out = score(tmp_path, rows, Keyed(), logit=("z0", "z1"))
    assert out["ploc_proba"].to_list() == PLOC().replay(Z[:, 1] - Z[:, 0]).tolist()

    P = links.softmax(Z)
    rows = pl.DataFrame(P, schema=["p0", "p1", "p2"])
    out = score(tmp_path, rows, Keyed(classes=3, proba=True), logit=("p0", "p1", "p2"))
    answered = out.select(f"ploc_proba_p{k}" for k in range(3)).to_numpy()
    assert answered == pytest.approx(PLOC(classes=3).replay(Z), abs=1e-12)


def test_a_state_goes_on_where_it_ended(tmp_path):
    keyed = Keyed(by="tenant")
    halves = [score(tmp_path, part, keyed) for part in (ROWS[:200], ROWS[200:])]
    whole = score(tmp_path, ROWS, by="tenant")
    assert_frame_equal(pl.concat(halves), whole, check_exact=True)
    assert keyed.lines == N


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("z\n1\nx\n", "the logit 'z' of row 2 is 'x'"),
        ("z,a\n1,1\n,2\n", "the logit 'z' of row 2 is empty"),
        ("z\n1\nnan\n", "the logit 'z' of row 2 is 'nan'"),
        ("z\n1\n-inf\n", "the logit 'z' of row 2 is '-inf'"),
        ("zz\n1\n", "has no column 'z'; did you mean 'zz'"),
        ("a,b\n1,2\n", "has no column 'z'; it has a, b"),
        ("z,ploc_shift\n1,2\n", "has a column 'ploc_shift' already"),
        ("z\n", "has no rows"),
        ("", "is empty"),
        ("z,a\n1,2\n1,2,3,4\n", "line 3 has 4 fields where the header has 2"),
        ("z,a\n1,\xe9\n", "is no CSV in UTF-8"),
        ("a" * 500 + "\x07,b\n1,2\n", "has no column 'z'; it has aaa"),
    ],
)
def test_a_file_that_cannot_be_answered_is_named_and_nothing_is_written(tmp_path, text, message):
    (tmp_path / "in.csv").write_text(text, encoding="latin-1")
    for target in ("out.csv", "out.parquet"):
        with pytest.raises(ValueError, match=r"in\.csv") as error:
            Score(Keyed(), ["z"]).run(Table(tmp_path / "in.csv"), Table(tmp_path / target))
        if target == "out.csv":
            assert message in str(error.value)
            assert len(str(error.value)) < 350
    assert [p.name for p in tmp_path.iterdir()] == ["in.csv"]


@pytest.mark.parametrize("line", [b'{"z":', b"[1, 2]", b"z", b'{"z": 1}{"z": 2}'])
def test_a_line_that_is_no_row_is_named_by_its_number(tmp_path, line):
    (tmp_path / "in.ndjson").write_bytes(b'{"z": 1}\n\n' + line + b"\n")
    with pytest.raises(ValueError, match=r"in\.ndjson: line 3 is no JSON object"):
        Score(Keyed(), ["z"]).run(Table(tmp_path / "in.ndjson"), Table(tmp_path / "out.csv"))
    assert [p.name for p in tmp_path.iterdir()] == ["in.ndjson"]


def test_a_bad_row_deep_in_a_file_is_named_by_its_place_and_the_old_answer_stays(tmp_path):
    z = [0.0] * (BATCH + 10)
    z[BATCH + 3] = float("nan")
    pl.DataFrame({"z": z, "t": list(range(len(z)))[::-1]}).write_parquet(tmp_path / "in.parquet")
    (tmp_path / "out.parquet").write_text("old")
    for options in ({}, {"deferred": True}, {"order_by": "t"}):
        with pytest.raises(ValueError, match=r"of row 65,540 is nan"):
            Score(Keyed(), ["z"], **options).run(
                Table(tmp_path / "in.parquet"), Table(tmp_path / "out.parquet")
            )
    assert (tmp_path / "out.parquet").read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.parquet", "out.parquet"]


def test_columns_of_other_kinds_are_refused(tmp_path):
    rows = pl.DataFrame({"z": [True], "k": [1.5], "t": [[1]], "x": [1.0]})
    with pytest.raises(TypeError, match="'z' is Boolean, which is no logit"):
        score(tmp_path, rows)
    with pytest.raises(TypeError, match="'k' is Float64; a key is"):
        score(tmp_path, rows, logit=("x",), by="k")
    with pytest.raises(TypeError, match="'t' is List"):
        score(tmp_path, rows, logit=("x",), order_by="t")
    with pytest.raises(ValueError, match="the key 'k' of row 2 is empty"):
        score(tmp_path, pl.DataFrame({"z": [1.0, 2.0], "k": ["a", None]}), by="k")
    with pytest.raises(ValueError, match=r"the probability 'z' of row 2 is 1\.5"):
        score(tmp_path, pl.DataFrame({"z": [0.5, 1.5]}), Keyed(proba=True))
    with pytest.raises(ValueError, match="is the file that is read"):
        Score(Keyed(), ["z"]).run(Table(tmp_path / "in.parquet"), Table(tmp_path / "in.parquet"))
    with pytest.raises(ValueError, match="2 logit columns do not make 3 classes"):
        Score(Keyed(classes=3), ["a", "b"])


@pytest.mark.parametrize(
    ("times", "ranks"),
    [
        (["10", "9", "-3"], [2, 1, 0]),
        (["1e3", "9.5", "10"], [2, 0, 1]),
        (["1700000000000000001", "1700000000000000002", "1700000000000000000"], [1, 2, 0]),
        (["18446744073709551613", "18446744073709551611", "18446744073709551612"], [2, 0, 1]),
        (["1700000000.123456789", "1700000000.123456788", "1e3"], [2, 1, 0]),
        (["0.30000000000000004", "1e-05", "0.3"], [2, 0, 1]),
        (["2024-03-01", "2023-12-31", "2024-02-29"], [2, 0, 1]),
        (["2024-03-01T10:00:00Z", "2024-03-01 09:59:59.5", "2024-03-01T09:59:59Z"], [2, 1, 0]),
    ],
)
def test_text_in_the_order_column_is_numbers_or_iso_times(tmp_path, times, ranks):
    out = score(tmp_path, pl.DataFrame({"z": [1.0, 2.0, 4.0], "when": times}), source="csv", order_by="when")
    assert out["ploc_count"].to_list() == ranks


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (["1", "2", "x"], "the order 'when' of row 3 is 'x'"),
        (["1.5", "nan", "0.5"], "the order 'when' of row 2 is 'nan'; every row needs a finite number"),
        (["1.5", "0.5", "-inf"], "the order 'when' of row 3 is '-inf'"),
        (["1e-9", "1.123456789012345678"], r"the order 'when' of row 1 is '1e-9'"),
        (["1", "123456789012345678901"], "row 2 is '123456789012345678901'; .* at most 20 digits"),
        (["01/02/2024", "02/02/2024"], "the order 'when' of row 1 is '01/02/2024'"),
        (["2024-01-01", None], "the order 'when' of row 2 is empty"),
        (["2024-01-01T00:00:00+02:00"], r"is '2024-01-01T00:00:00\+02:00'"),
    ],
)
def test_an_order_that_would_be_guessed_is_refused(tmp_path, times, message):
    rows = pl.DataFrame({"z": [1.0] * len(times), "when": times})
    for target in ("csv", "parquet"):
        with pytest.raises(ValueError, match=message):
            score(tmp_path, rows, source="csv", target=target, order_by="when")
    with pytest.raises(ValueError, match="the order 't' of row 2 is nan"):
        score(tmp_path, pl.DataFrame({"z": [1.0, 2.0], "t": [0.0, float("nan")]}), order_by="t")


def test_a_report_reads_its_columns_in_stream_order(tmp_path):
    (tmp_path / "in.csv").write_text("t,z,y,g\n3,0.3,1,b\n1,0.1,0,a\n2,0.2,1.0,a\n")
    z, y, groups = stream_of(Table(tmp_path / "in.csv"), "z", proba=False, label="y", by="g", order_by="t")
    assert (z.tolist(), y.tolist(), groups) == ([0.1, 0.2, 0.3], [0, 1, 1], ["a", "a", "b"])
    (tmp_path / "in.csv").write_text("z,y\n0.3,1\n0.1,2\n")
    with pytest.raises(ValueError, match="the label 'y' of row 2 is '2', not 0 or 1"):
        stream_of(Table(tmp_path / "in.csv"), "z", proba=False, label="y", by=None, order_by=None)


def test_the_ending_says_the_format_or_the_user_does(tmp_path):
    assert Table("a.JSONL").format == "ndjson"
    assert Table("a.dat", "csv").format == "csv"
    with pytest.raises(ValueError, match=r"the ending '\.dat' is none of"):
        Table("a.dat")
    (tmp_path / "rows.csv").write_text("z\n1\n")
    with pytest.raises(FileNotFoundError, match=r"did you mean rows\.csv"):
        Table(tmp_path / "row.csv").scan()
