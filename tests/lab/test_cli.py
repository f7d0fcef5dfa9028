import subprocess
import sys

import pytest

COMMAND = """
import sys
from ploc_lab import cli

def ended():
    raise {error}

cli.app.command(ended)
sys.argv = ["ploc-lab", "ended"]
cli.main()
"""


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        ("KeyboardInterrupt", 130, "interrupted; the same command goes on from what was done"),
        (
            "__import__('polars').exceptions.ColumnNotFoundError('no column mu\\n\\nResolved plan')",
            2,
            "no column mu",
        ),
        ("ValueError('no data set is called helok')", 2, "no data set is called helok"),
    ],
)
def test_what_ends_a_command_is_said_in_one_line(error, code, said):
    run = [sys.executable, "-c", COMMAND.format(error=error)]
    end = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (end.returncode, end.stdout, end.stderr) == (code, "", f"ploc-lab: {said}\n")
