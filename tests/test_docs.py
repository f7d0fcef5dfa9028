"""Every Python block of the README and of docs/ runs as it stands, and prints the text block after it."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(python[^\n]*)\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)


def blocks(page, spark):
    """The page's code, each block on its own lines for a traceback to point into the page, and its output."""
    text = page.read_text()
    return [
        (text[: match.start(2)].count("\n"), match[2], match[3])
        for match in FENCE.finditer(text)
        if ("spark" in match[1].split()) == spark
    ]


def run(page, spark):
    namespace = {"__name__": "__main__"}
    for line, code, output in blocks(page, spark):
        said = io.StringIO()
        with redirect_stdout(said):
            exec(compile("\n" * line + code, str(page), "exec"), namespace)
        if output is not None and not spark:  # a physical plan has numbers of its own in every run
            assert said.getvalue() == output, f"{page.name}, line {line}"


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, spark=False)], ids=lambda p: p.name)
def test_code_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(page, spark=False)


# The warnings are PySpark's own; tests/ploc/test_frame_spark.py leaves the same two aside.
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.spark
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, spark=True)], ids=lambda p: p.name)
def test_spark_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(page, spark=True)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_no_page_names_a_machine(page):
    assert not re.search(r"/(work|root|home|tmp)/", page.read_text())
