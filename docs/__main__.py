"""Every number and picture of these pages: `python -m docs` makes all, `python -m docs choosing` one."""

import importlib
import sys
from pathlib import Path

FOLDER = Path(__file__).parent

names = sorted(path.stem.removeprefix("make_") for path in FOLDER.glob("make_*.py"))
asked = sys.argv[1:] or names
if unknown := set(asked) - set(names):
    sys.exit(f"no page is made by {', '.join(sorted(unknown))}; there are: {', '.join(names)}")
for name in asked:
    importlib.import_module(f"docs.make_{name}").make(FOLDER)
    print(f"docs: {name}")
