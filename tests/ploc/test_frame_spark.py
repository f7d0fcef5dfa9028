"""PLOC on a real local Spark: the same numbers without collapsing, and online through kills and restarts."""

import os
import re
import signal
import subprocess
import sys
import time

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from ploc import PLOC, origin
from ploc.frame import center

pyspark = pytest.importorskip("pyspark", minversion="4.1")

from pyspark.errors import PySparkException  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402, N812

from ploc.spark import ROCKSDB, STORE, center_stream  # noqa: E402

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]
SCHEMA = "id bigint, tenant string, t bigint, z double, z1 double, at timestamp"
SCHEMA += ", note struct<of:string,all:array<int>>"


def start():
    os.environ["PYSPARK_PYTHON"] = sys.executable  # the workers must find ploc too
    builder = SparkSession.builder.master("local[2]").appName("ploc")
    settings = {
        STORE: ROCKSDB,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.log.level": "OFF",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",  # small tables would be put back together
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


@pytest.fixture(scope="module")
def spark():
    session = start()
    yield session
    session.stop()


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "id": np.arange(n),
            "tenant": rng.choice(["acme", "born", "c"], n),
            "t": rng.permutation(n),
            "z": rng.normal(1.0, 2.0, n),
            "z1": rng.normal(0.0, 1.0, n),
            "z2": rng.normal(-2.0, 3.0, n),
        }
    )


@pytest.fixture(scope="module")
def frame(spark):
    return spark.createDataFrame(table().to_arrow()).repartition(3).cache()


def read(df):
    return pl.from_arrow(df.toArrow()).sort("id")


def agree(got, want):
    assert got.columns == want.columns
    added = [name for name in want.columns if name.startswith("ploc_")]
    assert got.select(added).to_numpy() == pytest.approx(want.select(added).to_numpy(), rel=1e-12, abs=1e-12)
    assert got.drop(added).equals(want.drop(added))


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"logit": ["z", "z1", "z2"], "anchor": [0.0, 1.0, 2.0], "blocks": 7},
        {"order_by": ["tenant", "t"], "blocks": 1000},
        {"by": "tenant"},
        {"deferred": True, "anchor": 0.5},
        {"by": "tenant", "deferred": True},
    ],
    ids=str,
)
def test_the_numbers_are_those_of_replay(frame, arguments):
    agree(read(center(frame, **arguments)), center(table(), **arguments))


def test_probabilities(spark):
    rows = table().with_columns(p=1 / (1 + (-pl.col("z")).exp()))
    agree(read(center(spark.createDataFrame(rows.to_arrow()), proba="p")), center(rows, proba="p"))


def test_the_order_may_be_any_type_however_it_is_spread(spark):
    rows = table(100).with_columns(
        word=pl.col("t").cast(pl.String),
        far=pl.when(pl.col("t") == 99).then(1e18).otherwise(pl.col("t") ** 0.5),
    )
    df = spark.createDataFrame(rows.to_arrow())
    for order in ("word", "far"):
        agree(
            read(center(df, order_by=order, blocks=1 if order == "word" else 5)), center(rows, order_by=order)
        )
    empty = center(df.limit(0))
    assert empty.columns[-3:] == ["ploc_proba", "ploc_shift", "ploc_count"]
    assert empty.collect() == []


def test_names_that_spark_reads_as_syntax(spark):
    odd = {"z": "a 'logit'", "tenant": "the tenant", "z1": "a.b", "z2": "`c`", "id": "lo"}
    rows = table(50).rename(odd)
    df = spark.createDataFrame(rows.to_arrow())
    for by in (None, "the tenant"):
        got = center(df, "a 'logit'", by=by, blocks=3).withColumnRenamed("lo", "id")
        agree(read(got), center(rows, "a 'logit'", by=by).rename({"lo": "id"}))
    with pytest.raises(ValueError, match=r"dot or backtick in 'a\.b' for syntax; rename"):
        center(df, "a.b")


def test_one_unkeyed_stream_stays_spread_over_the_partitions(spark, frame):
    spark.conf.set("spark.sql.shuffle.partitions", "8")
    try:
        out = center(frame, blocks=64)
        sizes = [row["count"] for row in out.groupBy(F.spark_partition_id()).count().collect()]
        plan = out._jdf.queryExecution().executedPlan().toString()
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "2")
    assert sum(sizes) == 400
    assert max(sizes) < 200
    windows = re.findall(r"windowspecdefinition\((.*?),", plan)
    assert windows
    assert all(window.startswith("__ploc_block") for window in windows)


@pytest.mark.parametrize(
    ("column", "bad", "words"),
    [
        ("z", "double('NaN')", "logit 'z' is NaN where .*t = 7"),
        ("z", "cast(null as double)", "logit 'z' is null where .*t = 7"),
        ("t", "cast(null as bigint)", "'t' is null"),
        ("t", "8", "two rows tie where .*t = 8"),
        ("tenant", "cast(null as string)", "'tenant' is null"),
    ],
)
def test_a_bad_row_stops_the_query_and_says_where(frame, column, bad, words):
    df = frame.withColumn("tenant", F.lit("a")).withColumn(
        column, F.when(F.col("t") == 7, F.expr(bad)).otherwise(F.col(column))
    )
    keyed = center(df, by="tenant")  # nothing runs yet
    with pytest.raises(PySparkException, match=words):
        keyed.collect()
    if column != "tenant":
        with pytest.raises(PySparkException, match=words):
            center(df, blocks=4).select("ploc_shift").collect()


def test_a_narwhals_frame_of_spark_comes_back_as_one(frame):
    assert isinstance(center(nw.from_native(frame)), nw.LazyFrame)
    assert type(center(frame)) is type(frame)


# --- online -----------------------------------------------------------------------------------------------


def batches(folder, rows, spark, size=50):
    """The rows in files of one micro-batch each, in their order of time."""
    for i, part in enumerate(rows.sort("t").iter_slices(size)):
        part.sample(fraction=1.0, shuffle=True, seed=i).write_parquet(folder / f"{i:03}.parquet")
        os.utime(folder / f"{i:03}.parquet", (1e9 + i, 1e9 + i))  # Spark takes older files first
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))


def run(stream, out, **trigger):
    writer = stream.writeStream.option("checkpointLocation", str(out / "checkpoint")).trigger(**trigger)
    return writer.start(str(out / "rows"), format="parquet", outputMode="append")


def finish(stream, out):
    run(stream, out, availableNow=True).awaitTermination()


def online_table():
    at = pl.datetime(2024, 2, 28, time_zone="UTC") + pl.duration(hours=pl.col("t"))
    note = pl.struct(of=pl.col("tenant"), all=pl.concat_list(pl.col("id").cast(pl.Int32)))
    return table(300, seed=1).select("id", "tenant", "t", "z", "z1", at=at, note=note)


def check_online(spark, out, rows):
    got = pl.from_arrow(spark.read.parquet(str(out / "rows")).toArrow()).sort("t")
    assert got.select(rows.columns).to_dicts() == rows.sort("t").to_dicts()  # every row once, as it was
    for tenant, stream in got.group_by("tenant"):
        probs = PLOC().replay(stream["z"].to_numpy())
        assert np.array_equal(stream["ploc_proba"], probs), tenant
        assert stream["ploc_count"].to_list() == list(range(len(stream)))


@pytest.fixture
def folders(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    return tmp_path / "in", tmp_path / "out"


ONLINE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import test_frame_spark as t
spark = t.start()
stream = spark.readStream.schema(t.SCHEMA).option("maxFilesPerTrigger", 1).parquet(sys.argv[2])
t.run(t.center_stream(stream, by="tenant"), Path(sys.argv[3]), processingTime="0 seconds").awaitTermination()
"""


def test_a_query_that_is_killed_and_started_again_loses_and_doubles_nothing(spark, folders):
    source, out = folders
    rows = online_table()
    stream = batches(source, rows, spark, size=75)
    here = os.path.dirname(__file__)  # noqa: PTH120
    program = [sys.executable, "-c", ONLINE, here, str(source), str(out)]
    query = subprocess.Popen(
        program, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        while not (out / "rows" / "_spark_metadata" / "1").exists():
            assert query.poll() is None, query.stderr.read().decode()
            time.sleep(0.05)
    finally:
        os.killpg(query.pid, signal.SIGKILL)  # Python, the JVM and its workers, with batch 2 on its way
        query.communicate()
    written = len(list((out / "checkpoint" / "commits").glob("[0-9]*")))
    assert 1 <= written < 4
    finish(center_stream(stream, by="tenant"), out)
    check_online(spark, out, rows)

    # The worst moment of all: the answers are out, the batch is not yet marked as done.
    (out / "checkpoint" / "commits" / "3").unlink()
    (out / "checkpoint" / "commits" / ".3.crc").unlink(missing_ok=True)
    finish(center_stream(stream, by="tenant"), out)
    check_online(spark, out, rows)


def test_a_late_row_stops_the_query_or_is_taken_as_it_arrives(spark, folders, tmp_path):
    source, out = folders
    rows = online_table().head(20).with_columns(tenant=pl.lit("a"))
    stream = batches(source, rows, spark, size=10)
    first = rows["t"].min()
    rows.filter(pl.col("t") == first).with_columns(id=pl.lit(99, pl.Int64)).write_parquet(
        source / "late.parquet"
    )
    with pytest.raises(PySparkException, match=f"t = {first} comes after t = .* where tenant = a"):
        finish(center_stream(stream, by="tenant"), out)
    assert spark.read.parquet(str(out / "rows")).count() == 20

    def taken():
        both, ema = ["z", "z1"], origin.EMA(0.1)
        return center_stream(stream, both, by="tenant", order_by="at", late="arrival", origin=ema)

    arrival = tmp_path / "arrival"
    finish(taken(), arrival)
    got = pl.from_arrow(spark.read.parquet(str(arrival / "rows")).toArrow()).sort("ploc_count")
    assert got["id"].to_list()[-1] == 99
    probs = PLOC(2, origin=origin.EMA(0.1)).replay(got.select("z", "z1").to_numpy())
    assert np.array_equal(got.select("ploc_proba_z", "ploc_proba_z1").to_numpy(), probs)

    rows.head(1).with_columns(z=pl.lit(None, pl.Float64)).write_parquet(source / "missing.parquet")
    with pytest.raises(
        PySparkException, match=r"EMA\(0\.1\).* where tenant = a, but the query asks for .*Mean"
    ):
        finish(center_stream(stream, ["z", "z1"], by="tenant", order_by="at"), arrival)
    with pytest.raises(PySparkException, match="a logit is missing: Row"):
        finish(taken(), arrival)
    assert spark.read.parquet(str(arrival / "rows")).count() == 21


def test_what_online_refuses_before_it_starts(spark, frame, folders):
    source, _ = folders
    stream = batches(source, online_table(), spark)
    with pytest.raises(TypeError, match=r"ploc\.spark\.center_stream"):
        center(stream)
    with pytest.raises(TypeError, match=r"ploc\.frame\.center"):
        center_stream(frame, by="tenant")
    with pytest.raises(ValueError, match="one state a key"):
        center_stream(stream, by=())
    with pytest.raises(ValueError, match="'soon'"):
        center_stream(stream, by="tenant", late="soon")
    spark.conf.set(STORE, "something.Else")
    try:
        with pytest.raises(ValueError, match=r"RocksDB state store, not 'something\.Else'"):
            center_stream(stream, by="tenant")
    finally:
        spark.conf.set(STORE, ROCKSDB)
