"""The example report and its picture: the embedded stream where PLOC helps, in headless Chromium."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from ploc import randhie, report
from ploc.demo import Task, answer

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars"
)


def page() -> str:
    """The report of people with a physical limitation, met by a model of people without one."""
    table = randhie.load()
    limited = table["physlm"] > 0.5
    run = answer(table, table["mdvis"] > 2, Task("", "", "", "physlm", limited))
    sick = np.digitize(table["disea"][limited], [10, 20])
    names = ["under 10 diseases", "10 to 20", "20 and more"]
    return report.html(
        run.z,
        run.y,
        [names[i] for i in sick],
        title="People with a physical limitation",
        by="index of diseases",
    )


def make(folder: Path) -> None:
    """Write img/report.png: the page's upper part as a laptop shows it."""
    if CHROMIUM is None:
        sys.exit("docs: report: the picture is taken by Chromium, and there is none on this machine")
    with tempfile.TemporaryDirectory() as name:
        html = Path(name) / "report.html"
        html.write_text(page(), encoding="utf-8")
        subprocess.run(
            [
                CHROMIUM, *QUIET.split(), f"--user-data-dir={name}/profile", "--window-size=1280,1560",
                f"--screenshot={folder / 'img' / 'report.png'}", html.as_uri(),
            ],
            check=True, timeout=120, capture_output=True,
        )  # fmt: skip
