"""A table in memory, and the same table as LaTeX, Markdown, HTML and for the terminal."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from math import isfinite
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table as RichTable
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

MISSING = "-"
MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Number:
    """One number: how it is shown, its spread over checkpoints, and what the paper prints in its place."""

    value: float | None
    digits: int = 3
    signed: bool = False
    spread: float | None = None
    paper: float | None = None
    best: bool = False

    @property
    def shown(self) -> str:
        """Our number, or a dash where there is none.

        >>> Number(0.6634).shown, Number(-0.01, signed=True).shown, Number(None).shown
        ('0.663', '−0.010', '-')
        """
        return _show(self.value, self.digits, signed=self.signed)

    @property
    def wide(self) -> str:
        """The spread behind its sign; empty where there is none."""
        known = self.spread is not None and isfinite(self.spread)
        return f"±{_show(self.spread, self.digits)}" if known else ""

    @property
    def beside(self) -> str:
        """The paper's number and how far ours is from it; empty where the paper prints none.

        >>> Number(0.6634, paper=0.663).beside, Number(None, paper=0.663).beside
        ('0.663, +0.000', '0.663')
        """
        if self.paper is None:
            return ""
        printed = _show(self.paper, self.digits, signed=self.signed)
        if self.value is None:
            return printed
        return f"{printed}, {_show(self.value - self.paper, self.digits, signed=True)}"


Item = Number | str


@dataclass(frozen=True)
class Row:
    """A line: its cells, and the group it stands in."""

    cells: tuple[Item, ...]
    group: str = ""

    @property
    def beside(self) -> bool:
        """Whether some cell has a number of the paper."""
        return any(isinstance(cell, Number) and cell.paper is not None for cell in self.cells)


@dataclass(frozen=True)
class Table:
    """A table: `name` for its file, a title, heads, rows in groups, and what a reader must know.

    >>> row = Row(("PLOC", Number(0.6634, paper=0.663, best=True)))
    >>> table = Table("t", "A table", ("Method", "Acc"), [row])
    >>> print(table.markdown().splitlines()[4])
    | PLOC | **0.663** (0.663, +0.000) |
    """

    name: str
    title: str
    heads: tuple[str, ...]
    rows: Sequence[Row]
    notes: Sequence[str] = field(default=())

    def __post_init__(self) -> None:
        for i, row in enumerate(self.rows):
            if len(row.cells) != len(self.heads):
                raise ValueError(
                    f"row {i} of table {self.name!r} has {len(row.cells)} cells for {len(self.heads)} heads"
                )

    @property
    def groups(self) -> dict[str, list[Row]]:
        """The rows by group, in order of appearance."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.group, []).append(row)
        return found

    @property
    def beside(self) -> bool:
        """Whether the table has numbers of the paper."""
        return any(row.beside for row in self.rows)

    def markdown(self) -> str:
        """Title, table, notes; the group is the first column."""
        grouped = any(self.groups)
        heads = (*(("",) if grouped else ()), *self.heads)
        lines = [
            [_piped(head) for head in heads],
            ["---" if i == 0 else _align(self, i - grouped) for i in range(len(heads))],
        ]
        for group, rows in self.groups.items():
            for i, row in enumerate(rows):
                first = (_piped(group) if i == 0 else "",) if grouped else ()
                lines.append([*first, *(_markdown(cell) for cell in row.cells)])
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        notes = "\n".join(f"- {note}" for note in _notes(self, "in brackets"))
        return f"**{self.title}**\n\n{body}\n" + (f"\n{notes}\n" if notes else "")

    def latex(self) -> str:
        """A `table` of booktabs; where the paper prints numbers they stand in a small line below ours."""
        columns = "".join("r" if _numeric(self, i) else "l" for i in range(len(self.heads)))
        lines = [" & ".join(_tex(head) for head in self.heads) + r" \\"]
        for group, rows in self.groups.items():
            lines.append(r"\midrule")
            if group:
                lines.append(rf"\multicolumn{{{len(self.heads)}}}{{l}}{{\textit{{{_tex(group)}}}}} \\")
            for row in rows:
                lines.append(" & ".join(_latex(cell) for cell in row.cells) + r" \\")
                if row.beside:
                    below = [_latex_beside(cell) for cell in row.cells]
                    below[0] = r"\quad{\scriptsize paper}"
                    lines.append(" & ".join(below) + r" \\")
        notes = " ".join(_tex(_sentence(note)) for note in _notes(self, "in the small lines"))
        body = "\n".join(lines)
        return (
            f"% needs \\usepackage{{booktabs}}\n\\begin{{table}}[!htbp]\n\\centering\n"
            f"\\caption{{{_tex(_sentence(self.title))} {notes}}}\n"
            f"\\label{{tab:{self.name.replace('_', '-')}}}\n"
            f"\\footnotesize\n\\setlength{{\\tabcolsep}}{{3pt}}\n\\begin{{tabular}}{{{columns}}}\n"
            f"\\toprule\n{body}\n\\bottomrule\n\\end{{tabular}}\n\\end{{table}}\n"
        )

    def html(self) -> str:
        """A table element in a box that scrolls; notes as a caption below."""
        heads = "".join(
            f'<th scope=col class="{"n" if _numeric(self, i) else "w"}">{escape(head)}</th>'
            for i, head in enumerate(self.heads)
        )
        body = []
        for group, rows in self.groups.items():
            head = f"<tr class=group><th colspan={len(self.heads)} scope=rowgroup>{escape(group)}</th></tr>"
            body.append(f"<tbody>{head if group else ''}{''.join(map(_html_row, rows))}</tbody>")
        notes = "".join(f"<li>{escape(_sentence(note))}</li>" for note in _notes(self, "below ours"))
        return (
            f'<figure class=table id="table-{escape(self.name)}"><h3>{escape(self.title)}</h3>'
            f"<div class=scroll tabindex=0><table><thead><tr>{heads}</tr></thead>{''.join(body)}</table>"
            "</div>"
            f"{f'<figcaption><ul>{notes}</ul></figcaption>' if notes else ''}</figure>"
        )

    def terminal(self) -> RichTable:
        """For a console: the paper's numbers dim below ours."""
        shown = RichTable(
            title=Text(self.title, style="bold"),
            title_justify="left",
            caption=Text("\n".join(_notes(self, "below ours")), style="dim"),
            caption_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
        )
        for i, head in enumerate(self.heads):
            shown.add_column(Text(head), justify="right" if _numeric(self, i) else "left", no_wrap=i == 0)
        for group, rows in self.groups.items():
            if group:
                shown.add_row(Text(group, style="italic"))
            for row in rows:
                shown.add_row(*(_rich(cell) for cell in row.cells))
            shown.add_section()
        return shown


def _notes(table: Table, where: str) -> list[str]:
    said = [f"The paper's printed number and ours less the paper's stand {where}"] if table.beside else []
    if any(isinstance(c, Number) and c.wide for row in table.rows for c in row.cells):
        said.append("± is the standard deviation over checkpoints (ddof 1)")
    return [*said, *table.notes]


def _sentence(words: str) -> str:
    return words if words.endswith((".", ":", "?")) else words + "."


def _show(value: float | None, digits: int, *, signed: bool = False) -> str:
    if value is None or not isfinite(value):
        return MISSING
    if digits < 0:  # as many digits as it takes: p-values, gaps of rounding
        return f"{value:.1e}" if 0 < abs(value) < 1e-3 else f"{value:.3g}"
    rounded = round(value, digits) + 0.0  # no minus before a zero
    return f"{rounded:{'+' if signed else ''},.{digits}f}".replace("-", MINUS)


def _numeric(table: Table, column: int) -> bool:
    return any(isinstance(row.cells[column], Number) for row in table.rows)


def _align(table: Table, column: int) -> str:
    return "---:" if _numeric(table, column) else "---"


def _piped(words: str) -> str:
    return words.replace("|", "\\|")


def _markdown(cell: Item) -> str:
    if isinstance(cell, str):
        return _piped(cell)
    words = f"**{cell.shown}**" if cell.best else cell.shown
    words += f" {cell.wide}" if cell.wide else ""
    return f"{words} ({cell.beside})" if cell.beside else words


def _latex(cell: Item) -> str:
    if isinstance(cell, str):
        return _tex(cell)
    words = rf"\textbf{{{_tex(cell.shown)}}}" if cell.best else _tex(cell.shown)
    return words + (rf"\,{{\scriptsize {_tex(cell.wide)}}}" if cell.wide else "")


def _latex_beside(cell: Item) -> str:
    return rf"{{\scriptsize {_tex(cell.beside)}}}" if isinstance(cell, Number) and cell.beside else ""


_TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "↑": r"$\uparrow$",
    "↓": r"$\downarrow$", "→": r"$\to$", "±": r"$\pm$", MINUS: "$-$", "Δ": r"$\Delta$", "μ": r"$\mu$",
    "≤": r"$\le$", "≥": r"$\ge$", "<": "$<$", ">": "$>$", "|": "$|$", "…": r"\ldots{}",
    "[": "{[}",  # or it would be an argument of the line break before it
}  # fmt: skip


def _tex(words: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in words)


def _html_row(row: Row) -> str:
    cells = []
    for i, cell in enumerate(row.cells):
        if isinstance(cell, str):
            cells.append(
                f"<th scope=row>{escape(cell)}</th>" if i == 0 else f"<td class=w>{escape(cell)}</td>"
            )
            continue
        value = f"<b>{cell.shown}</b>" if cell.best else cell.shown
        spread = f"<i>{cell.wide}</i>" if cell.wide else ""
        beside = f"<small>{cell.beside}</small>" if cell.beside else ""
        cells.append(f"<td>{value}{spread}{beside}</td>")
    return f"<tr>{''.join(cells)}</tr>"


def _rich(cell: Item) -> Text:
    if isinstance(cell, str):
        return Text(cell)
    words = Text(cell.shown, style="bold" if cell.best else "")
    if cell.wide:
        words.append(f" {cell.wide}", style="dim not bold")
    if cell.beside:
        words.append(f"\n{cell.beside}", style="dim not bold")
    return words
