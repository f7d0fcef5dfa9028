import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ploc import PLOC, links
from ploc.keyed import Keyed
from ploc.stream import Filter, MalformedLineError

PLOC_STREAM = [sys.executable, "-m", "ploc.cli", "stream"]
finite = st.floats(-1e6, 1e6, allow_nan=False)


def through(folder: Path, data: bytes, rows: Keyed | None = None, **options) -> tuple[bytes, int, list[str]]:
    """What the filter makes of `data`, its exit code, and what it told."""
    told: list[str] = []
    (folder / "in").write_bytes(data)
    source, sink = (
        os.open(folder / "in", os.O_RDONLY),
        os.open(folder / "out", os.O_RDWR | os.O_CREAT | os.O_TRUNC),
    )
    try:
        code = Filter(rows or Keyed(), tell=told.append, **options).run(source, sink)
    finally:
        out = (folder / "out").read_bytes()
        os.close(source)
        os.close(sink)
    return out, code, told


def lines(logits) -> bytes:
    return b"".join(b'{"id": %d, "z": %s}\n' % (i, repr(z).encode()) for i, z in enumerate(logits))


@given(st.lists(finite, max_size=40))
@settings(max_examples=30, deadline=None)
def test_every_line_is_answered_by_stepping_and_comes_back_byte_for_byte(tmp_path_factory, logits):
    folder = tmp_path_factory.mktemp("s")
    out, code, told = through(folder, lines(logits))
    assert (code, told) == (0, [])
    center = PLOC()
    for given_line, line in zip(lines(logits).splitlines(), out.splitlines(), strict=True):
        assert line.startswith(given_line[:-1] + b',"ploc_proba":')
        row = json.loads(line)
        assert (row["ploc_count"], row["ploc_shift"]) == (center.count, center.shift)
        assert row["ploc_proba"] == center.step(row["z"])


def test_what_stands_after_the_brace_stays_there(tmp_path):
    out, _, _ = through(tmp_path, b'{"z":1.0}\r\n {"z":2.0} \t\n')
    first, second, rest = out.split(b"\n")
    assert first.startswith(b'{"z":1.0,"ploc_proba":')
    assert first.endswith(b"}\r")
    assert second.startswith(b' {"z":2.0,"ploc_proba":')
    assert second.endswith(b"} \t")
    assert rest == b""


def test_probabilities_of_a_line_sum_to_one(tmp_path):
    with pytest.raises(MalformedLineError, match=r"^line 1 has \[0.5, 0.2, 0.2\] as 'p', which sum to 0.9,"):
        through(tmp_path, b'{"p":[0.5,0.2,0.2]}\n', Keyed(classes=3, proba=True), field="p")


@pytest.mark.parametrize("seconds", [1e10, float("inf")])
def test_a_state_that_is_never_due_is_saved_at_the_end(tmp_path, seconds):
    state = tmp_path / "state.json"
    _, code, _ = through(tmp_path, b'{"z":1.0}\n', state=state, save_every=seconds)
    assert code == 0
    assert Keyed().load(state).count == 1


def test_keys_have_an_origin_each_and_numbers_are_keys_too(tmp_path):
    data = b'{"z":1.0,"k":"a"}\n{"z":-4.0,"k":7}\n{"z":1.0,"k":"a"}\n{"z":-4.0,"k":"7"}\n'
    rows = Keyed(by="k")
    out, _, _ = through(tmp_path, data, rows)
    assert [json.loads(line)["ploc_shift"] for line in out.splitlines()] == [0.0, 0.0, 1.0, -4.0]
    assert {key: center.count for key, center in rows.centers.items()} == {"a": 2, "7": 2}


def test_k_logits_are_a_list_and_probabilities_are_asked_for(tmp_path):
    Z = [[0.0, 1.0, 2.0], [3.0, -1.0, 0.5]]
    data = b"".join(json.dumps({"z": z}).encode() + b"\n" for z in Z)
    out, _, _ = through(tmp_path, data, Keyed(classes=3))
    center = PLOC(classes=3)
    for z, line in zip(Z, out.splitlines(), strict=True):
        row = json.loads(line)
        assert row["ploc_shift"] == center.shift.tolist()
        assert row["ploc_proba"] == pytest.approx(center.step(z).tolist(), abs=1e-15)

    out, _, _ = through(tmp_path, b'{"p":0.9}\n{"p":0.9}\n', Keyed(proba=True), field="p")
    assert [json.loads(line)["ploc_proba"] for line in out.splitlines()] == [pytest.approx(0.9), 0.5]
    assert json.loads(out.splitlines()[1])["ploc_shift"] == links.logit(0.9)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"not json", "is not JSON: 'not json'"),
        (b"", "is not JSON: ''"),
        (b"[1, 2]", "is no JSON object"),
        (b"17", "is no JSON object"),
        (b'{"zz": 1.0}', "has no field 'z'; did you mean 'zz'?"),
        (b'{"z": "1.0"}', "has '1.0' as 'z', which is no number"),
        (b'{"z": true}', "has True as 'z', which is no number"),
        (b'{"z": NaN}', "has nan as 'z', which is no finite logit"),
        (b'{"z": 1e999}', "has inf as 'z', which is no finite logit"),
        (b'{"z": 1' + b"0" * 400 + b"}", "which is no finite logit"),
        (b'{"z": 1.0, "ploc_shift": 2}', "has a field 'ploc_shift' already"),
        (b'{"z": 1.0, "n": "\xff"}', "is not UTF-8"),
        (b"[" * 100_000, "is not JSON"),
    ],
)
def test_a_malformed_line_is_named_and_stops_or_passes_as_chosen(tmp_path, line, reason):
    data = b'{"z": 2.0}\n' + line + b'\n{"z": 4.0}\n'
    state = tmp_path / "state.json"
    rows = Keyed()
    with pytest.raises(MalformedLineError) as error:
        through(tmp_path, data, rows, state=state)
    assert str(error.value).startswith(f"line 2 {reason}") or reason in str(error.value)
    assert f"{state} holds the state after them" in str(error.value)
    assert (tmp_path / "out").read_bytes().count(b"\n") == 1
    assert Keyed().load(state).lines == 1
    assert Keyed().load(state).count == 1

    out, code, told = through(tmp_path, data, on_bad="pass")
    assert code == 0
    assert len(told) == 1
    assert reason in told[0]
    assert out.splitlines()[1] == line
    assert json.loads(out.splitlines()[2])["ploc_shift"] == 2.0  # what was passed on moved nothing


@pytest.mark.parametrize(
    "bad", [b'{"z":1.0}', b'{"z":1.0,"k":null}', b'{"z":1.0,"k":1.5}', b'{"z":1.0,"k":["a"]}']
)
def test_a_line_without_a_key_is_malformed(tmp_path, bad):
    rows = Keyed(by="k")
    out, _, told = through(tmp_path, bad + b"\n", rows, on_bad="pass")
    assert out == bad + b"\n"
    assert "'k'" in told[0]
    assert rows.centers == {}


def test_the_last_line_needs_no_newline_and_lines_may_be_longer_than_a_pipe(tmp_path):
    data = b'{"note": "' + b"x" * 200_000 + b'", "z": 1.0}\r\n{"z": 3}'
    out, _, _ = through(tmp_path, data)
    assert [json.loads(line)["ploc_shift"] for line in out.splitlines()] == [0.0, 1.0]
    assert out.endswith(b'"ploc_count":1}\n')
    assert through(tmp_path, b"")[0] == b""


def test_an_answer_is_there_before_the_next_line_is_sent(tmp_path):
    with subprocess.Popen(PLOC_STREAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        center = PLOC()
        for z in (0.5, -1.0, 2.0):
            process.stdin.write(lines([z]))
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["ploc_proba"] == center.step(z)
        process.stdin.close()
    assert process.returncode == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_saves_the_state_that_was_answered(tmp_path, number, code):
    state = tmp_path / "state.json"
    command = [*PLOC_STREAM, "--state", str(state), "--save-every", "3600"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(lines([1.0, 2.0]))
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.readline()
        process.send_signal(number)
        assert process.wait(timeout=20) == code
        process.stdin.close()
    assert Keyed().load(state).lines == 2
    assert Keyed().load(state).centers[""].shift == 1.5


def test_an_idle_stream_saves_without_being_asked(tmp_path):
    state = tmp_path / "state.json"
    command = [*PLOC_STREAM, "--state", str(state), "--save-every", "0.05"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(lines([1.0]))
        process.stdin.flush()
        process.stdout.readline()
        until = time.monotonic() + 20
        while not state.exists() and time.monotonic() < until:
            time.sleep(0.01)
        assert Keyed().load(state).lines == 1
        process.stdin.close()


def test_kill_9_leaves_a_state_that_was_true_and_the_restart_goes_on_from_it(tmp_path):
    state, logits = tmp_path / "state.json", [((i * 7919) % 1000) / 100 - 3 for i in range(20_000)]
    every = lines(logits).splitlines(keepends=True)
    command = [*PLOC_STREAM, "--state", str(state), "--save-every", "0"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        answered = 0
        for start in range(0, 10_000, 500):
            process.stdin.writelines(every[start : start + 500])
            process.stdin.flush()
            for _ in range(500):
                process.stdout.readline()
            answered += 500
        process.kill()
        process.stdin.close()
    assert process.returncode == -signal.SIGKILL

    saved = Keyed().load(state)
    assert 0 < saved.lines <= answered
    center = PLOC()
    center.observe(logits[: saved.lines])
    assert saved.centers[""].state() == center.state()

    rest = subprocess.run(
        command, input=b"".join(every[saved.lines :]), capture_output=True, check=True, timeout=60
    )
    assert f"goes on after line {saved.lines:,}" in rest.stderr.decode()
    for z, line in zip(logits[saved.lines :], rest.stdout.splitlines(), strict=True):
        assert json.loads(line)["ploc_proba"] == center.step(z)


def test_a_reader_that_leaves_ends_the_stream_quietly(tmp_path):
    data = tmp_path / "in.ndjson"
    data.write_bytes(lines([0.25] * 60_000))
    with (
        data.open("rb") as source,
        subprocess.Popen(
            PLOC_STREAM, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process,
    ):
        process.stdout.readline()
        process.stdout.close()
        told = process.stderr.read()
        code = process.wait(timeout=20)
    assert (code, told) == (141, b"")


def test_a_full_disk_is_one_line_and_the_state_stays_behind_what_went_out(tmp_path):
    state = tmp_path / "state.json"
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*PLOC_STREAM, "--state", str(state)],
            input=lines([1.0, 2.0]), stdout=full, stderr=subprocess.PIPE, check=False, timeout=60,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert done.stderr == b"ploc: standard output: No space left on device\n"
    assert not state.exists()


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_a_closed_standard_stream_is_an_error_and_not_a_wait(closed):
    command = ["bash", "-c", f'exec "$0" -m ploc.cli stream {closed}', sys.executable]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60)
    assert done.returncode == 2
    assert b"standard input or output is closed" in done.stderr


def test_the_filter_starts_without_dataframes_and_charts():
    code = "import sys, ploc.cli, ploc.stream; print({'polars', 'matplotlib', 'sklearn'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "set()"
