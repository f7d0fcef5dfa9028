"""Loading by name: the registry, the cache, refusals."""

import numpy as np
import pytest

from ploc_lab import data
from ploc_lab.data import heloc, rand_hie


@pytest.fixture
def raw(shapes, tmp_path):
    """A small HELOC file; calling it writes another content."""

    def write(good):
        columns = {
            "RiskPerformance": ["Good" if i % good == 0 else "Bad" for i in range(40)],
            "ExternalRiskEstimate": [50 + i for i in range(40)],
            **{name: [i % 5 for i in range(40)] for name in (*heloc.COLUMNS.numeric, *heloc.COLUMNS.onehot)},
        }
        return shapes.table(tmp_path / heloc.FILE, columns)

    write(2)
    return write


ANY = data.Fingerprint({"rows": 40})


def test_every_name_has_a_task_of_that_name():
    assert {"heloc", "diabetes_readmission", "anes", "assistments", "acs_pubcov"} <= set(data.names())
    for name in data.names():
        task = data.task(name)
        assert task.name == name
        assert task.fingerprint.expected["ood_test"] > 0
        assert bool(task.source.downloads) + bool(task.source.steps) + name.startswith("rand_hie") == 1
        named = [*task.columns.numeric, *task.columns.onehot, *task.columns.passthrough]
        assert len(named) == len(set(named))


def test_a_stand_in_says_so_and_the_papers_own_do_not():
    stand_ins = {name for name in data.names() if data.task(name).stand_in}
    assert stand_ins == {"anes_1952_2000", "anes_presidential", "acs_pubcov_2018"}
    for name in stand_ins:
        assert data.task(name).stand_in.startswith("A stand-in for ")


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="no data set is called 'helock'; there are: heloc, diabetes"):
        data.load("helock")


def test_a_file_that_is_not_here_is_named_with_the_remedy(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"heloc_dataset_v1\.csv is not here; `ploc-lab data fetch heloc`"
    ):
        data.load("heloc", tmp_path)
    assert data.missing("heloc", tmp_path) == [tmp_path / heloc.FILE]
    with pytest.raises(FileNotFoundError, match=r"csv_pal\.zip is not here \(and 254 more\)"):
        data.load("acs_pubcov", tmp_path)


def test_the_second_load_is_the_first_from_the_cache(raw, tmp_path, monkeypatch):
    one = data.load("heloc", tmp_path, ANY)

    def fail(files):
        raise AssertionError("the raw file was parsed again")

    monkeypatch.setattr("polars.read_csv", fail)
    two = data.load("heloc", tmp_path, ANY)
    assert two.fingerprint == one.fingerprint
    for name in one.splits:
        np.testing.assert_array_equal(two.part(name).rows(), one.part(name).rows())


def test_other_content_is_another_entry_and_another_fingerprint(raw, tmp_path, work):
    one = data.load("heloc", tmp_path, ANY)
    raw(3)
    two = data.load("heloc", tmp_path, ANY)
    assert one.fingerprint != two.fingerprint
    assert len(list((work / "cache").iterdir())) == 2


def test_a_table_depends_on_the_code_that_read_it():
    def code(name):
        return {path.stem for path in data._code(data.task(name))}

    assert code("heloc") == {"encode", "splits", "heloc"}
    assert code("acs_pubcov_2018") == {"encode", "splits", "acs_pubcov_2018", "acs_pubcov"}
    assert code("rand_hie") == {"encode", "splits", "rand_hie", "randhie"}


def test_a_cached_table_is_checked_like_a_fresh_one(raw, tmp_path):
    data.load("heloc", tmp_path, ANY)
    with pytest.raises(data.WrongDataError, match="rows: expected 10,459, found 40"):
        data.load("heloc", tmp_path)


def test_a_damaged_cache_is_made_again(raw, tmp_path, work):
    one = data.load("heloc", tmp_path, ANY)
    entry = next((work / "cache").iterdir())
    (entry / "numeric.npy").write_bytes(b"")
    assert data.load("heloc", tmp_path, ANY).fingerprint == one.fingerprint


def test_a_table_without_a_target_is_refused(shapes, tmp_path, raw):
    path = tmp_path / heloc.FILE
    header, *rows = path.read_text().splitlines()
    path.write_text("\n".join([header, *rows[:12]]))
    with pytest.raises(data.WrongDataError, match="too few rows to split: 12 in the source, 0 in the target"):
        data.load("heloc", tmp_path, ANY)


def test_the_prior_is_that_of_the_train_rows(raw, tmp_path):
    ds = data.load("heloc", tmp_path, ANY)
    rate = ds.part("train").y.mean()
    np.testing.assert_allclose(ds.prior, [1 - rate, rate])


def test_the_embedded_tasks_need_no_file(tmp_path, monkeypatch):
    monkeypatch.setenv("PLOC_DATA", str(tmp_path))
    limited, good = data.load("rand_hie"), data.load("rand_hie_health")
    for ds, before, after in ((limited, 0.34082, 0.50140), (good, 0.35520, 0.36668)):
        s = ds.stream()
        assert ds.prior[1] == pytest.approx(before, abs=5e-6)
        assert s.open(np.zeros(len(s))).mean() == pytest.approx(after, abs=5e-6)
    # The domain never enters X.
    assert "physlm" not in limited.columns
    assert "hlthg" not in good.columns
    assert not {"mdvis"} & {*limited.columns, *good.columns}
    assert rand_hie.OFTEN == 2


LEAKS = {
    "anes_1952_2000": "regis regisvote presvote presvote_2party presvote_intent rep_presvote rep_pres_intent "
    "vote.1 dvote rvote vote region south resid weight1 weight2 weight3 icpsr_cty fips_cty",
    "anes_presidential": "pres_vote voted region",
    "acs_pubcov_2018": "PUBCOV DIS index",
}


@pytest.mark.parametrize(
    ("name", "target", "domain"),
    [
        ("anes_1952_2000", 9_705, 10_784),
        ("anes_presidential", 16_658, 18_509),
        ("acs_pubcov_2018", 63_489, 70_544),
    ],
)
def test_the_stand_ins_are_what_they_say_and_leak_nothing(real_data, name, target, domain):
    ds = data.load(name, real_data(*data.task(name).files))
    assert len(ds.stream()) == target
    assert len(ds.part("ood_test")) + len(ds.part("ood_validation")) == domain
    assert not {column.split("=")[0] for column in ds.columns} & set(LEAKS[name].split())


def test_the_acs_stand_in_is_in_census_order_and_its_rates_are_those_of_the_sample(real_data):
    ds = data.load("acs_pubcov_2018", real_data(*data.task("acs_pubcov_2018").files))
    s = ds.stream()
    # 23.4 % of people without and 64.6 % with a disability are covered in the sample's own rows.
    assert ds.prior[1] == pytest.approx(0.2338, abs=5e-4)
    assert s.open(np.zeros(len(s))).mean() == pytest.approx(0.6456, abs=1e-3)
    # Hearing, sight and memory are parts of the domain: nobody in the source has a difficulty.
    for column in ("DEAR=1", "DEYE=1", "DREM=1"):
        j = ds.columns.index(column)
        assert ds.part("train").rows(slice(0, 20_000))[:, j].sum() == 0
        assert s.rows(slice(0, 20_000))[:, j].sum() > 0
