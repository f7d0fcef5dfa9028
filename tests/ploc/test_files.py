import errno
import os
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


def test_a_device_or_a_pipe_is_refused_and_stays_what_it_is(tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    (tmp_path / "link.csv").symlink_to(pipe)
    for target in (pipe, tmp_path / "link.csv"):
        with pytest.raises(ValueError, match=r"is a device or a pipe.*; name a file"), whole(target):
            pass
    assert pipe.is_fifo()
    assert (tmp_path / "link.csv").is_symlink()


def test_a_link_goes_on_pointing_to_the_file_and_permissions_stay(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "a.txt", tmp_path / "a.txt"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    with whole(link) as part:
        assert part.stat().st_mode & 0o777 == 0o600
        part.write_text("new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in target.parent.iterdir()] == ["a.txt"]


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


def test_links_that_lead_round_are_refused(tmp_path):
    a, b = tmp_path / "a.txt", tmp_path / "b.txt"
    a.symlink_to(b)
    b.symlink_to(a)
    with pytest.raises(ValueError, match="is a link that leads back to itself; name a file"), whole(a):
        pass
    assert a.is_symlink()
