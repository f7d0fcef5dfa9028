"""The study as one HTML page that can be sent: what was found, beside what was printed, and how."""

from __future__ import annotations

import re
from html import escape
from importlib.metadata import version
from typing import TYPE_CHECKING

from ploc_lab.report import claims, figures, findings, protocol
from ploc_lab.report.table import MINUS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl
    from matplotlib.figure import Figure

    from ploc_lab.report.claims import Entry
    from ploc_lab.report.table import Table

LONG = 60
"""Rows from which a table is folded."""
DATA, HOW = ("streams",), ("cuts", "doings")
"""Tables of the data and of the protocol, which have sections of their own."""
BESIDE = re.compile(r"main|main_exact|deferred|per_dataset_.*|ablation|vision.*")
"""Tables with the paper's numbers, which are shown before the others."""
_MARKS = {claims.HOLDS: ("holds", "✓"), claims.FAILS: ("fails", "✗"), claims.UNTESTABLE: ("open", "?")}


def html(
    cells: pl.DataFrame,
    tables: Sequence[Table],
    drawn: Mapping[str, Figure],
    entries: Sequence[Entry],
    title: str = "The study",
) -> str:
    """One page without script or network: findings, claims, tables, figures, protocol."""
    beside = [t for t in tables if BESIDE.fullmatch(t.name)]
    rest = [t for t in tables if t not in beside and t.name not in (*DATA, *HOW)]
    sections = [
        ("findings", "What the cells say", _findings(findings.find(cells), tables)),
        ("data", "On which data", "".join(_table(t) for t in tables if t.name in DATA)),
        ("claims", "The paper's claims, one by one", _ledger(entries)),
        ("beside", "Ours beside the paper's", "".join(map(_table, beside)) or _nothing("no table")),
        (
            "figures",
            "Figures",
            "".join(_figure(name, f) for name, f in drawn.items()) or _nothing("no figure"),
        ),
        ("tables", "The other tables", "".join(map(_table, rest)) or _nothing("no table")),
        ("protocol", "Protocol", _protocol(cells, [t for t in tables if t.name in HOW])),
    ]
    sections = [(name, head, inner) for name, head, inner in sections if inner]
    body = "".join(
        f'<section id="{name}"><h2>{escape(head)}</h2>{inner}</section>' for name, head, inner in sections
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{escape(title)} - PLOC</title><style>{STYLE}</style></head>'
        f"<body><main>{_head(cells, title, entries)}{_contents(sections, beside, drawn, rest)}{body}</main>"
        "</body></html>\n"
    )


# --- the parts of the page --------------------------------------------------------------------------------


def _head(cells: pl.DataFrame, title: str, entries: Iterable[Entry]) -> str:
    tiles = "".join(
        f'<div class="{_MARKS[verdict][0]}"><dt><span aria-hidden=true>{_MARKS[verdict][1]}</span> '
        f"{escape(verdict)}</dt><dd>{number}</dd></div>"
        for verdict, number in claims.count(entries).items()
    )
    here = protocol.facts(cells)[0][1]
    return (
        f"<header><p class=eyebrow>Prequential logit-origin centering</p><h1>{escape(title)}</h1>"
        "<p class=dim>The paper's experiments, run again on the data at hand. Every number on this page is "
        f"computed from {escape(here)}; the paper's own are printed beside them and named as such.</p>"
        f"<dl class=tiles>{tiles}</dl><p class=dim>Claims of the paper by verdict. What it says of its data "
        "is decided on data that are exactly its own; a stand-in is never evidence for it.</p></header>"
    )


def _contents(
    sections: Iterable[tuple[str, str, str]],
    beside: Iterable[Table],
    drawn: Iterable[str],
    rest: Iterable[Table],
) -> str:
    inner = {
        "beside": [(f"table-{t.name}", _short(t.title)) for t in beside],
        "figures": [(f"figure-{name}", name.replace("_", " ")) for name in drawn],
        "tables": [(f"table-{t.name}", _short(t.title)) for t in rest],
    }
    lines = []
    for name, head, _ in sections:
        links = " · ".join(f'<a href="#{at}">{escape(words)}</a>' for at, words in inner.get(name, ()))
        lines.append(f'<li><a href="#{name}">{escape(head)}</a>{f"<p>{links}</p>" if links else ""}</li>')
    return f'<nav aria-label="Contents"><h2>Contents</h2><ol>{"".join(lines)}</ol></nav>'


def _findings(lines: Iterable[findings.Line], tables: Iterable[Table]) -> str:
    here = {table.name for table in tables}
    items = []
    for line in lines:
        link = f' <a href="#table-{line.table}">Table</a>' if line.table in here else ""
        items.append(f"<li><h3>{escape(line.head)}</h3><p>{_say(line.words)}{link}</p></li>")
    return f"<ol class=findings>{''.join(items)}</ol>" if items else _nothing("no cell of the plain protocol")


def _ledger(entries: Sequence[Entry]) -> str:
    rows, index = [], []
    for verdict, (css, mark) in _MARKS.items():
        links = " · ".join(f'<a href="#claim-{e.id}">{e.id}</a>' for e in entries if e.verdict == verdict)
        head = f"<b class=verdict><span aria-hidden=true>{mark}</span> {escape(verdict)}</b>"
        index.append(f'<p class="{css}">{head} {links or "none"}</p>')
    for e in entries:
        css, mark = _MARKS[e.verdict]
        rows.append(
            f'<tr id="claim-{escape(e.id)}" class="{css}"><th scope=row><p>{escape(e.claim)}</p>'
            f"<small>{escape(e.place)} · {escape(e.id)}</small></th>"
            f'<td class=w data-head="paper">{_say(e.paper)}</td>'
            f'<td class=w data-head="ours">{_say(e.ours)}</td>'
            f'<td class=w data-head="verdict"><b class=verdict><span aria-hidden=true>{mark}</span> '
            f"{escape(e.verdict)}</b><small>{_say(e.reason)}</small>"
            f"<small>Threshold: {escape(e.threshold)}</small></td></tr>"
        )
    return (
        "<p class=dim>Each threshold was stated before the run. A claim that fails is a result.</p>"
        f"<div class=index>{''.join(index)}</div>"
        "<div class=ledger><table><thead><tr><th scope=col>Claim</th><th scope=col>Paper</th>"
        "<th scope=col>Ours</th><th scope=col>Verdict, and why</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _table(table: Table) -> str:
    """A table as it is, or folded where it is long."""
    if len(table.rows) < LONG:
        return table.html()
    return (
        f"<details><summary>{escape(table.title)} <small>{len(table.rows)} rows</small></summary>"
        f"{table.html()}</details>"
    )


def _figure(name: str, figure: Figure) -> str:
    caption = figures.CAPTIONS.get(name, "")
    drawing = _inline(figures.svg(figure), name, caption or name)
    return (
        f'<figure class=drawing id="figure-{name}"><div class=scroll tabindex=0>{drawing}</div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def _inline(svg: str, name: str, label: str) -> str:
    """An SVG file as an element of a page: no prologue, names of its own, a label for those who listen."""
    drawing = svg[svg.index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.DOTALL)
    for pattern in (r'(\bid=")', r"(url\(#)", r'(href="#)'):
        drawing = re.sub(pattern, rf"\g<1>{name}-", drawing)
    width = re.search(r'width="([\d.]+)pt"', drawing)
    points = float(width[1]) if width else 600.0
    size = f"min-width:{points:.0f}px;max-width:{1.6 * points:.0f}px"
    attributes = f'<svg role="img" aria-label="{escape(label)}" style="{size}"'
    return drawing.replace("<svg", attributes, 1)


def _protocol(cells: pl.DataFrame, tables: Iterable[Table]) -> str:
    lines = [*protocol.facts(cells), ("report", f"ploc {version('ploc')}")]
    facts = "".join(f"<div><dt>{escape(a)}</dt><dd>{escape(b)}</dd></div>" for a, b in lines)
    return f"<dl class=facts>{facts}</dl>{''.join(map(_table, tables))}"


def _say(words: str) -> str:
    """Words for a page, with a minus before negative numbers instead of a hyphen."""
    return escape(re.sub(r"(?<![\w.])-(?=\d)", MINUS, words))


def _nothing(what: str) -> str:
    return f"<p class=dim>These cells fill {what}.</p>"


def _short(title: str) -> str:
    """A title up to its colon."""
    return title.partition(":")[0]


STYLE = """
:root{color-scheme:light dark;--paper:#fff;--card:#f6f7f9;--ink:#16191d;--dim:#565f6a;--line:#dde2e8;
--holds:#0b66b5;--fails:#b84a06;--open:#565f6a}
@media (prefers-color-scheme:dark){:root{--paper:#121518;--card:#1b1f24;--ink:#e9ecef;--dim:#a2acb7;
--line:#2e343b;--holds:#62b5f5;--fails:#f59e4b;--open:#a2acb7}}
*{box-sizing:border-box}
html{scroll-padding-top:12px}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,sans-serif}
main{max-width:1240px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:2rem;line-height:1.15;margin:.1em 0 .3em}
h2{font-size:1.35rem;margin:0 0 .7em}
h3{font-size:1.02rem;line-height:1.35;margin:0 0 .35em}
p{margin:.3em 0;max-width:90ch}
a{color:var(--holds)}
.eyebrow{color:var(--holds);font-size:.8rem;font-weight:600;letter-spacing:.06em;text-transform:uppercase}
.dim,figcaption,nav p{color:var(--dim)}
section{margin-top:44px}
section>h2{border-top:2px solid var(--ink);padding-top:12px}
.tiles{display:grid;grid-template-columns:repeat(3,minmax(0,1fr));gap:10px;margin:18px 0 8px;max-width:760px}
.tiles div{background:var(--card);border-left:5px solid var(--open);border-radius:0 8px 8px 0;
padding:10px 14px}
.tiles div.holds{border-color:var(--holds)}.tiles div.fails{border-color:var(--fails)}
.tiles dt{font-size:.88rem}.tiles dd{margin:0;font-size:1.9rem;font-weight:650;line-height:1.2}
.holds .verdict,.tiles .holds span{color:var(--holds)}
.fails .verdict,.tiles .fails span{color:var(--fails)}
.open .verdict{color:var(--open)}
nav{background:var(--card);border-radius:8px;padding:14px 18px;margin-top:22px}
nav h2{font-size:1rem;margin:0 0 .3em}nav ol{margin:0;padding-left:1.3em}
nav p{font-size:.84rem;margin:0 0 .3em;max-width:none}
.findings{padding-left:0;list-style:none;display:grid;gap:14px 30px;margin:0;
grid-template-columns:repeat(auto-fit,minmax(min(430px,100%),1fr))}
.findings li{border-top:1px solid var(--line);padding-top:10px;break-inside:avoid}
figure{margin:26px 0 0;min-width:0}
figcaption{font-size:.86rem;margin-top:4px}
figcaption ul{margin:.3em 0 0;padding-left:1.1em}
.drawing .scroll{background:#fff;border-radius:6px}
.drawing svg{display:block;width:100%;height:auto}
.scroll{overflow-x:auto;min-width:0;max-width:100%}
.scroll:focus-visible{outline:2px solid var(--holds)}
table{border-collapse:collapse;font-size:.86rem;font-variant-numeric:tabular-nums}
th,td{text-align:right;padding:4px 9px;border-bottom:1px solid var(--line);vertical-align:top;font-weight:400}
.table th:first-child{text-align:left;position:sticky;left:0;background:var(--paper);min-width:10.5em}
.w,.table th.w{text-align:left}
.table td.w{min-width:10em}
thead th{color:var(--dim);font-size:.93em;vertical-align:bottom;line-height:1.25}
tbody th{font-weight:550}
tr.group th{font-weight:700;padding-top:14px;border-bottom-color:var(--dim)}
td b{font-weight:700}td i{font-style:normal;color:var(--dim);font-size:.9em;margin-left:.35em}
td small{display:block;color:var(--dim);font-size:.86em;white-space:nowrap}
tr:target,.table:target h3{outline:2px solid var(--holds);outline-offset:2px}
details{border-top:1px solid var(--line);margin-top:18px;padding-top:10px}
summary{cursor:pointer;font-weight:600}summary small{color:var(--dim);font-weight:400}
details figure{margin-top:8px}details h3{display:none}
.index p{max-width:none;font-size:.84rem}
.ledger table{width:100%;table-layout:fixed}
.ledger th,.ledger td{text-align:left;padding:9px 12px 9px 0;overflow-wrap:anywhere}
.ledger thead th:nth-child(1){width:33%}.ledger thead th:nth-child(2){width:13%}
.ledger thead th:nth-child(3){width:17%}
.ledger th p{margin:0}.ledger small{display:block;color:var(--dim);font-size:.88em;font-weight:400;
white-space:normal;margin-top:3px}
.ledger tr{break-inside:avoid}
.facts{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:5px 18px;margin:0}
.facts div{display:contents}.facts dt{color:var(--dim)}.facts dd{margin:0;overflow-wrap:anywhere}
@media (max-width:720px){main{padding:18px 14px 44px}h1{font-size:1.6rem}
.tiles{gap:6px}.tiles div{padding:8px 9px}.tiles dt{font-size:.78rem}.tiles dd{font-size:1.5rem}
.ledger thead{display:none}.ledger table,.ledger tbody,.ledger tr,.ledger th,.ledger td{display:block}
.ledger tr{border-bottom:2px solid var(--line);padding:10px 0}
.ledger th,.ledger td{border:0;padding:3px 0}
.ledger td[data-head]::before{content:attr(data-head) ": ";color:var(--dim)}
.ledger td[data-head=verdict]::before{content:none}
.facts{display:block}.facts div{display:block;margin-bottom:8px}
th,td{padding:4px 6px}.table th:first-child{min-width:7em;max-width:9.5em}}
@page{margin:13mm}
@media print{:root{color-scheme:light;--paper:#fff;--card:#f6f7f9;--ink:#16191d;--dim:#565f6a;--line:#d5dae0;
--holds:#0b66b5;--fails:#b84a06;--open:#565f6a}body{font-size:10.5px}main{max-width:none;padding:0}
section{margin-top:22px}.scroll{overflow:visible}.drawing svg{min-width:0!important;max-width:100%!important}
.drawing,.table tr,.findings li{break-inside:avoid}h2,h3{break-after:avoid}table{font-size:8px}
th,td{padding:2px 4px}.table th:first-child{position:static;min-width:0}.table td.w{min-width:0}
.ledger table{font-size:9px}a{color:inherit;text-decoration:none}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
"""
