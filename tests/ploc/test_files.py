import errno
import resource
import signal
import subprocess
import sys

import pytest

from ploc.files import whole


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with whole(target) as part:
        part.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_an_error_inside_leaves_everything_as_it_was(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(FileNotFoundError, match="no-such"), whole(target) as part:
        part.with_name("no-such").rename(part)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_folder_or_a_path_into_nowhere_is_refused(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder"), whole(tmp_path):
        pass
    with pytest.raises(FileNotFoundError, match="there is no folder"), whole(tmp_path / "no" / "a.txt"):
        pass


def test_a_full_disk_keeps_the_old_file(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(OSError) as error, whole(target) as part:
            part.write_text("x" * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert error.value.errno == errno.EFBIG
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_killed_writer_leaves_the_old_file(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    code = (
        "import os, signal, sys; from ploc.files import whole\n"
        "with whole(sys.argv[1]) as part: part.write_text('half'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(target)], check=False).returncode == -9
    assert target.read_text() == "old"
