"""Every console block of docs/ says what the commands say, word by word."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES = [page for page in sorted((ROOT / "docs").glob("*.md")) if FENCE.search(page.read_text())]


def steps(page):
    """Commands and what the page says they print, in order."""
    for block in FENCE.findall(page.read_text()):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = step.partition("\n")
            yield command, output


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_console_blocks_print_what_they_say(page, tmp_path):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command, output in steps(page):
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=os.environ | {"PATH": path}, check=False, timeout=60,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert done.stdout == output, command
