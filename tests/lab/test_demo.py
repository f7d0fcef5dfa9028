import dataclasses

import pytest

from ploc_lab import demo
from ploc_lab.report import names


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A demo on streams of 150 rows, and where it leaves its files."""
    out = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLOC_WORK", str(out / "work"))
        patch.setattr(demo, "SMALL", dataclasses.replace(demo.SMALL, seeds=(0, 1), limit=150))
        patch.setattr(demo, "SOURCE_ROWS", 500)
        yield out


def test_it_shows_every_method_on_both_tasks_in_eighty_columns(told, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    demo.demo(workers=2, out=told)
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    for method in map(names.method, demo.SMALL.methods):
        assert sum(line.startswith(f" {method}  ") for line in text.splitlines()) == 2, method
    for line in text.splitlines():
        if line.split()[:1] in (["Tent"], ["EATA"], ["SAR"], ["LAME"]):
            assert line.rstrip().endswith("as source")
        if line.split()[:1] in (["FTAT"], ["PFT3A,"]):
            assert line.rstrip().endswith("68,353")  # every weight of the MLP on eight columns

    assert (told / "figures" / f"{demo.FIGURE}.png").stat().st_size > 10_000
    page = (told / "index.html").read_text()
    assert "<svg" in page
    assert "RAND HIE" in page
