"""The page that can be sent: whole, self-contained, and looked at in a real browser, wide and narrow."""

import base64
import re

import pytest

from ploc_lab.report import claims, page, tables


def made(report) -> str:
    return page.html(report.cells, list(report.tables.values()), report.drawn, report.entries)


@pytest.fixture(scope="module")
def pages(reports) -> dict[str, str]:
    """The page of cells as the paper prints them, and that of the small study."""
    return {name: made(report) for name, report in reports.items()}


@pytest.mark.parametrize("name", ["printed", "run"])
def test_the_page_is_whole_and_needs_nothing_from_elsewhere(pages, name, parsed):
    seen = parsed(pages[name])
    assert seen.open == []
    assert "script" not in seen.tags
    assert "iframe" not in seen.tags
    assert all(link.startswith("#") for link in seen.links)
    assert {link[1:] for link in seen.links} <= set(seen.ids)
    assert len(seen.ids) == len(set(seen.ids)), "an anchor stands twice"
    assert not re.search(r"url\((?!#)", pages[name])
    assert not re.search(r"\bNone\b|\bnan\b|\binf\b", seen.text)


@pytest.mark.parametrize("name", ["printed", "run"])
def test_the_page_has_every_section_claim_table_and_figure(pages, reports, name, parsed):
    seen, report = parsed(pages[name]), reports[name]
    wanted = {"findings", "data", "claims", "beside", "figures", "tables", "protocol"}
    wanted |= {f"claim-{entry.id}" for entry in report.entries}
    wanted |= {f"table-{table}" for table in report.tables} | {
        f"figure-{drawing}" for drawing in report.drawn
    }
    assert wanted <= set(seen.ids)
    for entry in report.entries:
        assert " ".join(entry.claim.split()) in seen.text
    for word, number in claims.count(report.entries).items():
        assert re.search(rf"{word}\s+{number}\b", seen.text)


def test_the_papers_numbers_stand_beside_ours(pages, parsed):
    seen = parsed(pages["printed"])
    assert "0.612, +0.000" in seen.text
    assert "The paper's printed number and ours less the paper's stand below ours" in seen.text


def test_words_of_the_cells_are_never_markup(world):
    odd = world.with_columns(versions=world["versions"] + "<script>alert(1)</script>")
    text = page.html(odd, [], {}, [])
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_the_same_cells_make_the_same_page(reports, pages):
    assert made(reports["printed"]) == pages["printed"]


def test_a_page_of_almost_nothing_is_a_page(world, parsed):
    few = world.filter(world["method"] == "source")
    assert parsed(page.html(few, tables.build(few), {}, [])).open == []


# --- in a real browser ------------------------------------------------------------------------------------

SEEN = """(() => {
  const box = e => e.getBoundingClientRect();
  return {
    drawings: [...document.querySelectorAll('figure.drawing svg')].map(s => ({
      label: s.getAttribute('aria-label'), width: box(s).width, height: box(s).height,
      texts: s.querySelectorAll('text').length,
      inked: [...s.querySelectorAll('path, use')].filter(m => box(m).width + box(m).height > 2).length,
      font: Math.min(...[...s.querySelectorAll('text')].map(
        t => parseFloat(getComputedStyle(t).fontSize) * box(s).width / s.viewBox.baseVal.width)),
      spill: [...s.querySelectorAll('text')].filter(
        t => box(t).left < box(s).left - 2 || box(t).right > box(s).right + 2).map(t => t.textContent)})),
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    wide: [...document.querySelectorAll('main *')].filter(
      e => box(e).right > innerWidth + 1 && !e.closest('.scroll')).map(e => e.outerHTML.slice(0, 80)),
    smallest: Math.min(...[...document.querySelectorAll('p, td, th, li, dd, dt, small')].filter(
      e => e.textContent.trim()).map(e => parseFloat(getComputedStyle(e).fontSize))),
    tables: document.querySelectorAll('figure.table').length,
    colours: ['--ink', '--paper', '--dim', '--holds', '--fails', '--open'].map(
      n => getComputedStyle(document.documentElement).getPropertyValue(n).trim()),
  };
})()"""
COMPLAINTS = {"Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"}


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("name", ["printed", "run"])
def test_in_chromium_everything_is_there_and_nothing_spills(browser, pages, reports, name, width):
    ask, _, told = browser(pages[name], width)
    seen = ask(SEEN)
    assert len(seen["drawings"]) == len(reports[name].drawn)
    assert seen["tables"] == len(reports[name].tables)
    for drawing in seen["drawings"]:
        assert drawing["label"], drawing
        assert drawing["texts"] > 5, drawing
        assert drawing["inked"] > 10, drawing
        assert round(drawing["font"], 1) >= 7, drawing
        assert drawing["height"] > 120, drawing
        assert drawing["spill"] == [], drawing
    assert seen["overflow"] == 0, seen["wide"]
    assert seen["wide"] == []
    assert seen["smallest"] >= 11
    assert [m for m in told if m["method"] in COMPLAINTS] == []
    asked = {m["params"]["request"]["url"].split(":")[0] for m in told
             if m["method"] == "Network.requestWillBeSent"}  # fmt: skip
    assert asked <= {"file", "data"}


@pytest.mark.browser
def test_in_chromium_a_link_into_a_folded_table_opens_it(browser, pages):
    ask, _, _ = browser(pages["run"], 1280)
    folded = ask("document.querySelector('details figure.table').id")
    assert ask("document.querySelector('details').open") is False
    ask(f"location.hash = '#{folded}'")
    assert ask("document.querySelector('details').open") is True


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_chromium_words_stand_out_from_the_paper(browser, pages, scheme):
    ask, call, _ = browser(pages["run"], 1280)
    call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    ink, paper, *others = ask(SEEN)["colours"]
    call("Emulation.setEmulatedMedia", features=[])

    def light(colour):
        digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
        parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(a, b):  # WCAG 2
        return (max(light(a), light(b)) + 0.05) / (min(light(a), light(b)) + 0.05)

    assert (light(paper) < 0.1) == (scheme == "dark")
    assert contrast(ink, paper) > 7
    assert all(contrast(colour, paper) > 4.5 for colour in others)


@pytest.mark.browser
def test_in_chromium_it_prints(browser, pages):
    _, call, _ = browser(pages["printed"], 1280)
    pdf = base64.b64decode(call("Page.printToPDF", printBackground=True)["data"])
    assert 5 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 60
