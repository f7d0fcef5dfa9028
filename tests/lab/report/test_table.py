"""One table in four languages: the same numbers in each, and no word that breaks a language."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ploc_lab.report.table import MINUS, MISSING, Number, Row, Table

NASTY = r"[a]_b & 50 % of <b>x</b> {y} $z$ #1 ~^ \w | `c` ± ≤ → μ" + ' "q" ' + "'s'"
TABLE = Table(
    "a_table",
    f"Title: {NASTY}",
    ("Method", "Acc ↑", "Δ AUROC", "remarks"),
    [
        Row(("Source", Number(0.6634, spread=0.0123, paper=0.663), Number(0.0, 4, signed=True), ""), "MLP"),
        Row(("PLOC", Number(0.71, best=True), Number(-0.00004, 4, signed=True), NASTY), "MLP"),
        Row(("PLOC", Number(None, paper=0.5), Number(-0.25, 4, signed=True), "cut"), NASTY),
    ],
    [NASTY],
)
words = st.text(st.sampled_from(NASTY + "abc 019"), max_size=20)


def plain(name: str = "t", *rows: Row, heads: tuple[str, ...] = ("a", "b")) -> Table:
    return Table(name, "T", heads, list(rows))


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (Number(0.66349), "0.663"),
        (Number(-0.0001, signed=True), "+0.000"),
        (Number(-0.0001), "0.000"),
        (Number(-0.1), f"{MINUS}0.100"),
        (Number(12345.4, 0), "12,345"),
        (Number(None), MISSING),
        (Number(float("nan")), MISSING),
        (Number(float("inf")), MISSING),
        (Number(3e-7, -1), "3.0e-07"),
        (Number(0.0123, -1), "0.0123"),
        (Number(0.0, -1), "0"),
    ],
)
def test_a_number_is_shown_as_it_is_read(number, shown):
    assert number.shown == shown


def test_a_spread_that_is_no_number_is_not_shown():
    assert [Number(1.0, spread=s).wide for s in (None, float("nan"), 0.25)] == ["", "", "±0.250"]


def test_beside_is_what_the_paper_prints_and_ours_less_it():
    assert Number(0.7, paper=0.75).beside == f"0.750, {MINUS}0.050"
    assert Number(None, paper=0.75).beside == "0.750"
    assert Number(0.7).beside == ""


def test_a_row_that_does_not_fit_its_heads_is_refused():
    with pytest.raises(ValueError, match="row 1 of table 't' has 1 cells for 2 heads"):
        plain("t", Row(("a", "b")), Row(("a",)))


# --- Markdown ---------------------------------------------------------------------------------------------


def columns(line: str) -> int:
    return len(re.findall(r"(?<!\\)\|", line)) - 1


@given(words, words, words)
def test_markdown_keeps_its_columns_whatever_the_words(a, b, group):
    table = plain("t", Row((a, Number(1.0)), group), heads=(b, "n"))
    lines = [line for line in table.markdown().splitlines() if line.startswith("|")]
    assert {columns(line) for line in lines} == {3 if group else 2}


def test_markdown_has_title_group_numbers_and_notes():
    text = TABLE.markdown()
    assert text.startswith("**Title: ")
    assert "| MLP | Source | 0.663 ±0.012 (0.663, +0.000) | +0.0000 |" in text
    assert "|  | PLOC | **0.710** |" in text
    assert "- The paper's printed number and ours less the paper's stand in brackets" in text
    assert "- ± is the standard deviation over checkpoints (ddof 1)" in text
    assert text.endswith("\n")


# --- LaTeX ------------------------------------------------------------------------------------------------


def sound(text: str) -> None:
    """What a compiler would stumble over: braces, environments, dollars, columns, letters that TeX keeps."""
    bare = re.sub(r"\\[\\{}$&%#_]", "", re.sub(r"^%.*$", "", text, flags=re.MULTILINE))
    depth = 0
    for letter in bare:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        assert depth >= 0
    assert depth == 0
    assert re.findall(r"\\begin\{(\w+)\}", text) == list(reversed(re.findall(r"\\end\{(\w+)\}", text)))
    assert bare.count("$") % 2 == 0
    outside = re.sub(r"\$[^$]*\$", "", bare)
    assert not set("#%_^~<>|") & set(outside.replace("!htbp", "")), outside
    assert text.isascii() or not set(text) & set("↑↓→±−Δμ≤≥…")


def cells_of(text: str) -> list[int]:
    body = re.search(r"\\toprule(.*)\\bottomrule", text, re.DOTALL)[1]
    rows = [row for row in body.split("\\\\\n") if row.strip() and "multicolumn" not in row]
    return [len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows]


def test_latex_is_sound():
    text = TABLE.latex()
    sound(text)
    assert set(cells_of(text)) == {4}
    assert r"\label{tab:a-table}" in text
    assert r"\textbf{0.710}" in text
    assert r"\begin{tabular}{lrrl}" in text
    assert text.count("paper}") == 2  # a small line below each row that the paper prints


@given(words, words, words, words)
def test_latex_is_sound_whatever_the_words(a, b, c, d):
    text = Table("t", a, (b, "n"), [Row((c, Number(-1.0, paper=2.0)), d)], [a]).latex()
    sound(text)
    assert set(cells_of(text)) == {2}


# --- HTML -------------------------------------------------------------------------------------------------


@given(words, words, words)
def test_html_is_closed_and_says_the_words_as_they_are(parsed, a, b, c):
    page = parsed(Table("t", a, (b, "n"), [Row((c, Number(1.0)))], [a]).html())
    assert page.open == []
    assert set(page.tags) <= {"figure", "h3", "div", "table", "thead", "tr", "th", "tbody", "td",
                              "figcaption", "ul", "li"}  # fmt: skip
    assert all(word in page.said for word in (a, b, c) if word)


def test_html_has_every_number_the_group_and_the_note(parsed):
    page = parsed(TABLE.html())
    for word in ("0.663", "±0.012", "0.663, +0.000", "0.710", "0.500", NASTY, f"{NASTY}."):
        assert word in page.said, word
    assert page.tags.count("tbody") == 2
    assert 'id="table-a_table"' in TABLE.html()


# --- the terminal -----------------------------------------------------------------------------------------


def test_the_terminal_shows_every_number_and_takes_no_word_for_markup():
    console = Console(width=200, record=True, file=None, quiet=False)
    with console.capture() as captured:
        console.print(
            Table("t", "[red]T", ("a", "b"), [Row(("[b]x[/b]", Number(0.25, paper=0.5)))]).terminal()
        )
    text = captured.get()
    assert "[red]T" in text
    assert "[b]x[/b]" in text
    assert "0.250" in text
    assert f"0.500, {MINUS}0.250" in text
