import json
import os
import pty
import re
import signal
import subprocess
import sys
import time

import polars as pl
import pytest

from ploc import PLOC
from ploc.cli import main
from ploc.keyed import Keyed

RUN = [sys.executable, "-m", "ploc.cli"]


def ploc(*words, folder=None, stdin=b"", **options):
    return subprocess.run(
        [*RUN, *map(str, words)],
        cwd=folder,
        input=stdin,
        capture_output=True,
        timeout=60,
        check=False,
        **options,
    )


@pytest.fixture
def rows(tmp_path):
    frame = pl.DataFrame(
        {"z": [1.0, -2.0, 0.5, 3.0], "y": [1, 0, 0, 1], "t": [4, 3, 2, 1], "k": list("abab")}
    )
    frame.write_csv(tmp_path / "rows.csv")
    return frame


@pytest.fixture
def here(tmp_path, monkeypatch, capsys):
    """The command run in this process: exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    terminate = signal.getsignal(signal.SIGTERM)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["ploc", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capsys.readouterr()

    yield run
    signal.signal(signal.SIGTERM, terminate)


def test_score_answers_a_file(tmp_path, rows):
    done = ploc("score", "rows.csv", "--logit", "z", "--order-by", "t", "-o", "out.csv", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    out = pl.read_csv(tmp_path / "out.csv")
    assert out["ploc_proba"].to_list()[::-1] == PLOC().replay(rows["z"].to_numpy()[::-1]).tolist()


def test_score_begins_with_a_state_and_saves_it(tmp_path, rows):
    words = [
        "score",
        "rows.csv",
        "--logit",
        "z",
        "--by",
        "k",
        "--state",
        "s.json",
        "--deferred",
        "-o",
        "out.parquet",
    ]
    for run in (1, 2):
        assert ploc(*words, folder=tmp_path).returncode == 0
        assert Keyed(by="k").load(tmp_path / "s.json").lines == 4 * run
    assert pl.read_parquet(tmp_path / "out.parquet")["ploc_count"].to_list() == [4] * 4
    done = ploc(*[w for w in words if w not in ("--by", "k")], folder=tmp_path)
    assert done.returncode == 2
    assert b"was saved with by = 'k'" in done.stderr


def test_score_and_stream_share_their_states(tmp_path, rows):
    assert (
        ploc(
            "score", "rows.csv", "--logit", "z", "--state", "s.json", "-o", "out.csv", folder=tmp_path
        ).returncode
        == 0
    )
    done = ploc("stream", "--state", "s.json", folder=tmp_path, stdin=b'{"z": 0.0}\n')
    assert json.loads(done.stdout)["ploc_shift"] == rows["z"].mean()
    assert "goes on after line 4 (4 rows observed)" in done.stderr.decode()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["score", "rows.csv", "--logit", "zz", "-o", "o.csv"],
            "rows.csv has no column 'zz'; did you mean 'z'?",
        ),
        (
            ["score", "row.csv", "--logit", "z", "-o", "o.csv"],
            "row.csv: no such file; did you mean rows.csv?",
        ),
        (["score", "rows.csv", "-o", "o.csv"], "say which column holds the logit with --logit"),
        (
            ["score", "rows.csv", "--logit", "z", "--proba", "z", "-o", "o.csv"],
            "--logit and --proba are two ways",
        ),
        (["score", "rows.csv", "--logit", "z", "-o", "no/o.csv"], "no/o.csv: there is no folder no"),
        (["score", "rows.csv", "--logit", "z", "-o", "o.xls"], "the ending '.xls' is none of"),
        (["score", "rows.csv", "--logit", "k", "-o", "o.csv"], "the logit 'k' of row 1 is 'a'"),
        (["score", "rows.csv", "--logit", "z", "--anchor", "x", "-o", "o.csv"], "--anchor"),
        (["score", "rows.csv", "--logit", "z", "--ordr-by", "t", "-o", "o.csv"], "--order-by"),
        (["score", "rows.csv", "--logit", "z", "-o", "rows.csv"], "is the file that is read"),
        (["score", "rows.csv", "--logit", "z", "-o", "pipe.csv"], "a device or a pipe"),
        (
            ["score", "rows.csv", "--logit", "z", "--logit", "z", "-o", "o.csv"],
            "the column 'z' is named twice",
        ),
        (
            ["score", "rows.csv", "--logit", "z", "--state", "no/s.json", "-o", "o.csv"],
            "no/s.json: there is no folder no",
        ),
        (["stream", "--state", "no/s.json"], "no/s.json: there is no folder no"),
        (["report", "rows.csv", "-o", "pipe.csv"], "a device or a pipe"),
        (["score", "rows.csv", "--logit", "z", "--state", "rows.csv", "-o", "o.csv"], "holds no state"),
        (["score"], "ploc score --help"),
        (["scor"], 'Did you mean "score"?'),
        (["stream", "--classes", "1"], "classes must be"),
        (["stream", "--save-every", "-1"], "--save-every is -1.0"),
        (["stream", "--save-every", "nan"], "--save-every is nan"),
        (["stream", "--on-bad", "skip"], "on-bad"),
        (["report", "rows.csv", "--label", "t", "-o", "o.html"], "the label 't' of row 1 is '4', not 0 or 1"),
        (["report", "rows.csv", "--by", "kk", "-o", "o.html"], "did you mean 'k'?"),
    ],
)
def test_an_error_is_one_line_with_code_2_and_no_file(tmp_path, rows, here, words, message):
    os.mkfifo(tmp_path / "pipe.csv")
    before = sorted(p.name for p in tmp_path.iterdir())
    code, out, told = here(*words)
    assert code == 2, told
    assert message in told
    assert re.fullmatch(r"ploc: [^\n]+\n", told)
    assert out == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == before
    assert pl.read_csv(tmp_path / "rows.csv").equals(rows)


@pytest.mark.parametrize("command", ["score", "report"])
@pytest.mark.parametrize("name", ["rows.csv", "./rows.csv", "soft.csv", "hard.csv"])
def test_no_command_writes_over_what_it_reads(tmp_path, rows, here, command, name):
    (tmp_path / "soft.csv").symlink_to("rows.csv")
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "rows.csv")
    code, _, told = here(command, "rows.csv", "--logit", "z", "-o", name)
    shown = name.removeprefix("./")
    assert (code, told) == (2, f"ploc: {shown} is the file that is read; write to another one\n")
    assert pl.read_csv(tmp_path / "rows.csv").equals(rows)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["hard.csv", "rows.csv", "soft.csv"]


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("name", ["s.json", "./s.json", "link"])
def test_answers_and_state_are_two_files(tmp_path, rows, here, there, name):
    words = ["score", "rows.csv", "--logit", "z", "--state", "s.json", "--to", "csv"]
    if there:
        here(*words, "-o", "o.csv")
    (tmp_path / "link").symlink_to("s.json")
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.exists()}
    code, _, told = here(*words, "-o", name)
    shown = name.removeprefix("./")
    assert (code, told) == (2, f"ploc: {shown} is the file of --state; write to another one\n")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.exists()} == before


def test_a_folder_that_takes_no_files_is_an_error(tmp_path, rows):
    done = ploc("score", "rows.csv", "--logit", "z", "-o", "/proc/o.csv", folder=tmp_path)
    assert done.returncode == 2
    assert re.fullmatch(rb"ploc: /proc/o.csv: [^\n]+\n", done.stderr)


def test_an_interrupted_run_leaves_no_file(tmp_path):
    pl.DataFrame({"z": [0.5] * 3_000_000, "k": [i % 5000 for i in range(3_000_000)]}).write_parquet(
        tmp_path / "in.parquet"
    )
    words = ["score", "in.parquet", "--logit", "z", "--by", "k", "-o", "out.parquet"]
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        with subprocess.Popen([*RUN, *words], cwd=tmp_path, stderr=subprocess.PIPE) as process:
            until = time.monotonic() + 30
            while not (tmp_path / ".out.parquet.part").exists() and time.monotonic() < until:
                time.sleep(0.01)
            process.send_signal(number)
            _, told = process.communicate(timeout=60)
        assert process.returncode == code
        assert told == (b"ploc: interrupted; no file was changed\n" if number == signal.SIGINT else b"")
        assert [p.name for p in tmp_path.iterdir()] == ["in.parquet"]


@pytest.mark.parametrize("command", ["", "score", "stream", "report", "demo"])
def test_help_says_what_a_command_does(command, here):
    code, words, told = here(*command.split(), "--help")
    assert (code, told) == (0, "")
    assert "Usage: ploc" in words
    if command in ("score", "stream", "report"):
        for option in re.findall(r"--[a-z][a-z-]+", words):
            assert not option.startswith("--no-"), option  # switches that do nothing
        assert "[required]" in words or command == "stream"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_version_and_the_completion_are_there(tmp_path, shell):
    assert re.fullmatch(rb"\d+\.\d+\S*\n", ploc("--version").stdout)
    home = os.environ | {"HOME": str(tmp_path)}  # it adds a line to the shell's own start-up file
    done = ploc("--install-completion", "--shell", shell, "--output", tmp_path / "c.sh", env=home)
    assert done.returncode == 0, done.stderr
    assert "order-by" in (tmp_path / "c.sh").read_text()
    if shell == "bash":
        words = "COMP_WORDS=(ploc score --ord); COMP_CWORD=2; _ploc; echo ${COMPREPLY[@]}"
        said = subprocess.run(
            ["bash", "-c", f"source {tmp_path}/c.sh; {words}"], capture_output=True, check=True, timeout=60
        )
        assert said.stdout.split() == [b"--order-by"]


def test_a_terminal_sees_a_progress_bar_and_a_pipe_does_not(tmp_path, rows):
    words = [*RUN, "score", "rows.csv", "--logit", "z", "-o", "out.csv"]
    main, side = pty.openpty()
    done = subprocess.run(words, cwd=tmp_path, stderr=side, stdout=subprocess.PIPE, check=True, timeout=60)
    os.close(side)
    told = os.read(main, 1 << 16).decode()
    os.close(main)
    assert "answering rows.csv" in told
    assert "4 rows answered into out.csv" in told
    assert done.stdout == b""


def test_report_writes_one_page(tmp_path, rows):
    done = ploc(
        "report",
        "rows.csv",
        "--label",
        "y",
        "--by",
        "k",
        "--title",
        "a <stream>",
        "-o",
        "r.html",
        folder=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert "<h1>a &lt;stream&gt;</h1>" in (tmp_path / "r.html").read_text()
