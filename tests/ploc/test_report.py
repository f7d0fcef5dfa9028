import base64
import re

import numpy as np
import pytest

from ploc import links, report, theory
from ploc.center import PLOC

rng = np.random.default_rng(11)
N = 1500
TRUE = rng.normal(size=N)
Y = (rng.random(N) < links.sigmoid(2 * TRUE)).astype(int)
RARE = (rng.random(N) < links.sigmoid(2 * TRUE - 2)).astype(int)
GROUPS = [f"region {i}" for i in rng.integers(0, 26, N)]
PAGES = {
    "helps": report.html(2 * TRUE - 1.5, Y, GROUPS, title="a stream that moved", by="region"),
    "hurts": report.html(2 * TRUE - 2, RARE, title="a stream far from even"),
    "no labels": report.html(2 * TRUE - 1.5, groups=GROUPS),
    "one class": report.html(2 * TRUE, np.ones(N)),
    "tiny": report.html([0.5, -1.0], [1, 0]),
    "constant": report.html(np.zeros(50), np.arange(50) % 2, ["a"] * 50),
    "anchored": report.html(2 * TRUE, Y, anchor=-1.0),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_well_formed_whole_and_says_no_nonsense(name, parsed):
    page = parsed(PAGES[name])
    assert page.open == []
    assert all(link.startswith("#") for link in page.links)
    assert "script" not in page.tags
    assert "url(" not in re.sub(r"url\(#clip\w+\)", "", PAGES[name])
    assert not re.search(r"\bnan\b|\binf\b|None", page.text)
    assert "NaN" not in PAGES[name]
    assert not re.search(r'"[^"]*\bnan\b[^"]*"', re.sub(r"<title>.*?</title>", "", PAGES[name]))


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("helps", "PLOC helps on this stream"),
        ("hurts", "PLOC hurts on this stream"),
        ("tiny", "No evidence that PLOC helps or hurts here"),
        ("no labels", "Whether PLOC helps can't be told"),
        ("one class", "Whether PLOC helps can't be told"),
    ],
)
def test_the_verdict_is_plain(name, verdict, parsed):
    assert verdict in parsed(PAGES[name]).text


def test_the_numbers_are_those_of_the_library(parsed):
    text = parsed(PAGES["helps"]).text
    z = 2 * TRUE - 1.5
    drift = theory.drift_bound(z, Y)
    assert f"{drift.pairs:,} of {Y.sum() * (N - Y.sum()):,} pairs here" in text
    assert f"AUROC source {drift.auroc_source:.4f}, PLOC {drift.auroc_ploc:.4f}" in re.sub(r"\s+,", ",", text)
    assert f"{((PLOC().replay(z) >= 0.5) != (z >= 0)).mean():.0%}" in text
    assert "all other groups" in text  # 26 regions, 20 of them by name


def test_without_labels_it_says_what_cannot_be_said_and_nothing_that_needs_them(parsed):
    text = parsed(PAGES["no labels"]).text
    free = theory.label_free_bound(2 * TRUE - 1.5)
    assert f"can't have moved by more than {free.bound(N // 2):.4f} if half" in text
    for word in ("accuracy 0", "ECE 0", "ROC AUROC", "bootstrap"):
        assert word not in text
    assert "every label is 1" in parsed(PAGES["one class"]).text


def test_labels_change_no_answer():
    a, b = (report.Story.of(2 * TRUE, y, None, 0.0, 0) for y in (Y, 1 - Y))
    assert np.array_equal(a.centred, b.centred)


def test_the_same_stream_makes_the_same_page():
    assert report.html([0.5, -1.0], [1, 0]) == PAGES["tiny"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0],), "2 or more"),
        (([[1.0, 2.0]],), "2 or more"),
        (([1.0, float("nan")],), "row 1 is nan"),
        (([1.0, 2.0], [0, 2]), "label of row 1"),
        (([1.0, 2.0], None, ["a"]), "1 groups do not go with 2 rows"),
    ],
)
def test_bad_streams_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        report.html(*arguments)


# --- in a real browser ------------------------------------------------------------------------------------


SEEN = """(() => {
  const shown = [...document.querySelectorAll('svg.chart')].filter(s => s.getBoundingClientRect().width > 0);
  const box = e => e.getBoundingClientRect();
  return {
    charts: shown.map(s => ({
      name: s.getAttribute('aria-label'), width: box(s).width, height: box(s).height,
      marks: s.querySelectorAll('g path, g circle').length,
      inked: [...s.querySelectorAll('g path, g circle')].some(m => box(m).width + box(m).height > 2),
      font: Math.min(...[...s.querySelectorAll('text')].map(
        t => parseFloat(getComputedStyle(t).fontSize) * box(s).width / s.viewBox.baseVal.width)),
      spill: [...s.querySelectorAll('text')].filter(
        t => box(t).left < box(s).left - 1 || box(t).right > box(s).right + 1).map(t => t.textContent)})),
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    wide: [...document.querySelectorAll('main *')].filter(
      e => box(e).right > innerWidth + 1 && !e.closest('.scroll') && !e.closest('svg')
    ).map(e => e.outerHTML.slice(0, 80)),
    colours: ['--ink', '--paper', '--dim', '--source', '--ploc'].map(
      n => getComputedStyle(document.documentElement).getPropertyValue(n).trim()),
  };
})()"""


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("name", PAGES)
def test_in_chromium_every_chart_is_drawn_and_nothing_spills(browser, name, width):
    ask, _, told = browser(PAGES[name], width)
    seen = ask(SEEN)
    assert seen["charts"]
    for chart in seen["charts"]:
        assert chart["marks"] > 0, chart
        assert chart["inked"], chart
        assert chart["font"] >= 11, chart
        assert chart["spill"] == [], chart
        assert chart["height"] > 80, chart
    assert len({chart["name"] for chart in seen["charts"]}) == len(seen["charts"])
    assert len(seen["charts"]) == ask("document.querySelectorAll('figure').length")
    assert seen["overflow"] == 0, seen["wide"]
    assert seen["wide"] == []
    complaints = {"Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"}
    assert [m for m in told if m["method"] in complaints] == []
    asked_for = {
        m["params"]["request"]["url"].split(":")[0]
        for m in told
        if m["method"] == "Network.requestWillBeSent"
    }
    assert asked_for <= {"file", "data"}


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_chromium_words_and_lines_stand_out_from_the_paper(browser, scheme):
    ask, call, _ = browser(PAGES["helps"], 1280)
    call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    ink, paper, dim, source, ploc = ask(SEEN)["colours"]
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
    assert contrast(dim, paper) > 4.5
    assert contrast(source, paper) > 3
    assert contrast(ploc, paper) > 3


@pytest.mark.browser
def test_in_chromium_it_prints_on_a_few_pages(browser):
    _, call, _ = browser(PAGES["helps"], 1280)
    pdf = base64.b64decode(call("Page.printToPDF", printBackground=True)["data"])
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 8
