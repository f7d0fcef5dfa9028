"""Charts as small SVG: no script, no fonts of its own, colours from the page's style."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, isfinite, log10
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

STYLE = """
svg.chart{display:block;width:100%;height:auto;font:13px system-ui,sans-serif;fill:var(--ink)}
svg.chart text.dim{fill:var(--dim)}
svg.chart .grid{stroke:var(--line);stroke-width:1}
svg.chart .ref{stroke:var(--dim);stroke-width:1.25;stroke-dasharray:2 3;fill:none}
svg.chart .line{fill:none;stroke-width:2.25;stroke-linejoin:round;stroke-linecap:round}
svg.chart .line.source{stroke-dasharray:7 4}
svg.chart .source{stroke:var(--source);color:var(--source)}
svg.chart .ploc{stroke:var(--ploc);color:var(--ploc)}
svg.chart .truth{stroke:var(--truth);color:var(--truth)}
svg.chart .area{stroke-width:1;fill:currentColor;fill-opacity:.28}
svg.chart .area.negative{fill-opacity:.0;stroke:var(--ink);stroke-width:1.5}
svg.chart .dot{fill:currentColor;stroke:none}
svg.chart .whisker{stroke-width:1.5;fill:none}
"""


@dataclass
class Chart:
    """A plotting area with axes; marks are added by name, `svg` gives the picture.

    >>> chart = Chart("a line", x=(0, 1), y=(0, 1))
    >>> chart.line([0, 1], [0, 1], "ploc").svg()[:4]
    '<svg'
    """

    name: str
    x: tuple[float, float]
    y: tuple[float, float]
    xlabel: str = ""
    ylabel: str = ""
    width: int = 400
    height: int = 270
    left: int = 52
    xformat: Callable[[float], str] | None = None
    yformat: Callable[[float], str] | None = None
    xticks: Sequence[float] | None = None
    yticks: Sequence[float] | None = None
    marks: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.x, self.y = _open(self.x), _open(self.y)
        self.right, self.top, self.bottom = 14, 30 if self.ylabel else 10, 40 if self.xlabel else 24

    def px(self, x: float) -> float:
        """From a value to a place."""
        low, high = self.x
        return round(self.left + (x - low) / (high - low) * (self.width - self.left - self.right), 1)

    def py(self, y: float) -> float:
        """From a value to a place; values grow upwards."""
        low, high = self.y
        return round(self.height - self.bottom - (y - low) / (high - low) * self._tall, 1)

    @property
    def _tall(self) -> float:
        return self.height - self.top - self.bottom

    def line(self, x: Sequence[float] | Floats, y: Sequence[float] | Floats, role: str) -> Chart:
        """A line through points; a value that is not finite breaks it."""
        pen, path = "M", []
        for a, b in zip(x, y, strict=True):
            if isfinite(b):
                path.append(f"{pen}{self.px(a)} {self.py(b)}")
                pen = "L"
            else:
                pen = "M"
        return self._add(f'<path class="line {role}" d="{"".join(path)}"/>')

    def steps(self, edges: Floats, heights: Floats, role: str) -> Chart:
        """A histogram's outline, filled down to the axis."""
        path = [f"M{self.px(edges[0])} {self.py(self.y[0])}"]
        for a, b, tall in zip(edges[:-1], edges[1:], heights, strict=True):
            path.append(f"L{self.px(a)} {self.py(tall)}L{self.px(b)} {self.py(tall)}")
        path.append(f"L{self.px(edges[-1])} {self.py(self.y[0])}Z")
        return self._add(f'<path class="area {role}" d="{"".join(path)}"/>')

    def dot(self, x: float, y: float, role: str, radius: float = 4, tip: str = "") -> Chart:
        """A point, with a word for who hovers over it."""
        title = f"<title>{escape(tip)}</title>" if tip else ""
        return self._add(
            f'<circle class="dot {role}" cx="{self.px(x)}" cy="{self.py(y)}" r="{radius:g}">{title}</circle>'
        )

    def segment(self, x: tuple[float, float], y: tuple[float, float], role: str) -> Chart:
        """A straight line between two points, such as an interval."""
        a, b, c, d = self.px(x[0]), self.py(y[0]), self.px(x[1]), self.py(y[1])
        return self._add(f'<path class="{role}" d="M{a} {b}L{c} {d}"/>')

    def rule(self, *, x: float | None = None, y: float | None = None) -> Chart:
        """A dotted line across the area."""
        ends = (
            (self.px(x), self.py(self.y[0]), self.px(x), self.py(self.y[1]))
            if x is not None
            else (self.px(self.x[0]), self.py(y or 0.0), self.px(self.x[1]), self.py(y or 0.0))
        )
        return self._add('<path class="ref" d="M{} {}L{} {}"/>'.format(*ends))

    def text(self, x: float, y: float, words: str, anchor: str = "start", dy: float = -5) -> Chart:
        """Words at a place."""
        at = f'x="{self.px(x)}" y="{self.py(y) + dy:g}" text-anchor="{anchor}"'
        return self._add(f'<text class="dim" {at}>{escape(words)}</text>')

    def _add(self, mark: str) -> Chart:
        self.marks.append(mark)
        return self

    def svg(self) -> str:
        """The picture."""
        floor_, body = self.height - self.bottom, []
        for value in self.yticks if self.yticks is not None else ticks(*self.y, 4):
            at = self.py(value)
            words = escape(self.yformat(value) if self.yformat else _short(value))
            body.append(f'<path class="grid" d="M{self.left} {at}H{self.width - self.right}"/>')
            body.append(
                f'<text class="dim" x="{self.left - 7}" y="{at + 4:g}" text-anchor="end">{words}</text>'
            )
        for value in self.xticks if self.xticks is not None else ticks(*self.x, max(2, self.width // 90)):
            at = self.px(value)
            words = escape(self.xformat(value) if self.xformat else _short(value))
            end = "end" if at > self.width - 26 else "middle"
            body.append(f'<text class="dim" x="{at}" y="{floor_ + 17}" text-anchor="{end}">{words}</text>')
        body.append(f'<path class="grid" d="M{self.left} {floor_}H{self.width - self.right}"/>')
        if self.ylabel:
            body.append(f'<text class="dim" x="2" y="12">{escape(self.ylabel)}</text>')
        if self.xlabel:
            middle = (self.left + self.width - self.right) / 2
            place = f'x="{middle:g}" y="{self.height - 5}" text-anchor="middle"'
            body.append(f'<text class="dim" {place}>{escape(self.xlabel)}</text>')
        size = f'viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}"'
        clip = f"clip{crc32(repr((self.name, self.width)).encode()):x}"
        area = (
            f'<clipPath id="{clip}"><rect x="{self.left - 6}" y="{self.top - 6}" '
            f'width="{self.width - self.left - self.right + 12}" height="{self._tall + 12}"/></clipPath>'
        )
        return (
            f'<svg class="chart" {size} role="img" aria-label="{escape(self.name)}">{area}{"".join(body)}'
            f'<g clip-path="url(#{clip})">{"".join(self.marks)}</g></svg>'
        )


def ticks(low: float, high: float, about: int) -> list[float]:
    """Round numbers between two ends: steps of 1, 2 or 5 times a power of ten.

    >>> ticks(0, 1, 4)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    rough = (high - low) / max(about, 1)
    power = 10.0 ** floor(log10(rough))
    step = min((m * power for m in (1, 2, 5, 10)), key=lambda s: abs(s - rough))
    digits = max(0, -floor(log10(step)) + 1)
    return [round(i * step, digits) for i in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def percent(value: float) -> str:
    """A share as people read it.

    >>> percent(0.25)
    '25%'
    """
    return f"{100 * value:.0f}%"


def count(value: float) -> str:
    """A number of rows on an axis.

    >>> count(250000)
    '250k'
    """
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def _short(value: float) -> str:
    return f"{value:g}".replace("-", "\N{MINUS SIGN}")


def _open(ends: tuple[float, float]) -> tuple[float, float]:
    """An interval that has a length, so that a constant can be drawn."""
    low, high = float(ends[0]), float(ends[1])
    return (low, high) if high > low else (low - 0.5, high + 0.5)
