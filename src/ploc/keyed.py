"""One PLOC a key, and the file that remembers them all."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ploc.center import PLOC
from ploc.files import whole

VERSION = 1
SETTINGS = ("classes", "anchor", "proba", "by")


@dataclass
class Keyed:
    """A `PLOC` for every key met so far; without `by`, one for all rows under the key `""`.

    `classes=2` is one relative logit a row, K > 2 is K logits; `lines` counts the lines that were answered.

    >>> rows = Keyed(by="tenant")
    >>> rows["acme"].step(1.0), rows["acme"].step(1.0), rows.count
    (0.7310585786300049, 0.5, 2)
    """

    classes: int = 2
    anchor: float = 0.0
    proba: bool = False
    by: str | None = None
    lines: int = 0
    centers: dict[str, PLOC] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._new()  # a bad setting is refused before the first row

    @property
    def count(self) -> int:
        """Rows observed, over all keys."""
        return sum(center.count for center in self.centers.values())

    def __getitem__(self, key: str) -> PLOC:
        """The key's centre; a new one for a new key."""
        center = self.centers.get(key)
        if center is None:
            center = self.centers[key] = self._new()
        return center

    def _new(self) -> PLOC:
        return PLOC(None if self.classes == 2 else self.classes, anchor=self.anchor)

    def save(self, path: str | Path) -> None:
        """Write the state, whole or not at all."""
        settings = {name: getattr(self, name) for name in SETTINGS}
        states = {key: center.state() for key, center in self.centers.items()}
        saved = {"ploc": "state", "version": VERSION, **settings, "lines": self.lines, "keys": states}
        with whole(path) as part:
            part.write_text(json.dumps(saved) + "\n", encoding="utf-8")

    def load(self, path: str | Path) -> Keyed:
        """Read a state that was saved under these settings; other settings are refused, not bent."""
        path = Path(path)
        try:
            saved: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            version = saved["ploc"], saved["version"]
            centers = {str(key): PLOC.from_state(state) for key, state in saved["keys"].items()}
            theirs = {name: saved[name] for name in SETTINGS}
            lines = int(saved["lines"])
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise ValueError(f"{path} holds no state of `ploc` ({error!r}); it was not changed") from None
        if version != ("state", VERSION):
            raise ValueError(f"{path} is version {version[1]!r} of a {version[0]!r}; this reads {VERSION}")
        for name, value in theirs.items():
            if value != getattr(self, name):
                raise ValueError(
                    f"{path} was saved with {name} = {value!r}, but this run has {getattr(self, name)!r}; "
                    f"run it as it was saved, or begin another state file"
                )
        return Keyed(**theirs, lines=lines, centers=centers)
