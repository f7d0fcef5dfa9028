"""What is known of a data set on this machine: is it here, is it the right one, and if not, what differs."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ploc_lab import data


@dataclass(frozen=True)
class Status:
    """What `ploc-lab data check` says of one data set; `right` is None where there is no file to judge.

    `problems` says what is wrong with what is there: what differs, or why it can't be read.
    """

    name: str
    title: str
    stand_in: str | None
    label: str
    domain: str
    licence: str
    terms: str
    page: str
    form: bool
    here: bool
    right: bool | None
    problems: list[str]
    missing: list[str]
    expected: dict[str, Any]
    fingerprint: str | None

    def asdict(self) -> dict[str, Any]:
        """JSON-safe values."""
        return asdict(self)


def status(name: str, root: Path | None = None) -> Status:
    """Look for a data set's files and, if all are here, read and check them."""
    task = data.task(name)
    missing = data.missing(name, root)
    problems = [f"{path} is a folder where a file is expected" for path in missing if path.is_dir()]
    right, fingerprint = None, None
    if not missing:
        try:
            fingerprint = data.load(name, root).fingerprint
            right = True
        except data.WrongDataError as error:
            right, problems = False, error.differences
        except PermissionError as error:
            right, problems = False, [f"{error.filename} can't be read: {error.strerror}"]
    return Status(
        name=name,
        title=task.title,
        stand_in=task.stand_in,
        label=task.label,
        domain=task.domain,
        licence=task.source.licence,
        terms=task.source.terms,
        page=task.source.page,
        form=task.source.form,
        here=not missing,
        right=right,
        problems=problems,
        missing=[str(path) for path in missing],
        expected=dict(task.fingerprint.expected),
        fingerprint=fingerprint,
    )
