"""Downloads from a server of our own on this machine."""

import hashlib
import http.server
import threading
from types import SimpleNamespace

import pytest

from ploc_lab.data.fetch import FetchError, fetch, get
from ploc_lab.data.schema import Download, Source

CONTENT = bytes(range(256)) * 400


@pytest.fixture
def server():
    """A server that can be told to change its file, to cut answers short, or to forget its manners."""
    state = SimpleNamespace(content=CONTENT, cut=None, ranges=True, size=True, status=None, asked=[])

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            state.asked.append(self.headers.get("Range"))
            if state.status:
                self.send_error(state.status)
                return
            tag = f'"{hashlib.sha256(state.content).hexdigest()}"'
            asked, start = self.headers.get("Range"), 0
            if asked and state.ranges and self.headers.get("If-Range", tag) == tag:
                start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(state.content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(state.content)}")
                self.end_headers()
                return
            self.send_response(206 if start else 200)
            self.send_header("ETag", tag)
            if start:
                self.send_header(
                    "Content-Range", f"bytes {start}-{len(state.content) - 1}/{len(state.content)}"
                )
            body = state.content[start:]
            if state.size:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: state.cut])

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        state.url = f"http://127.0.0.1:{running.server_address[1]}/file.zip"
        thread = threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield state
        running.shutdown()
        thread.join()


def want(server, sha256=None):
    return Download(server.url, "folder/file.zip", sha256)


def files(root):
    return sorted(path.name for path in (root / "folder").iterdir())


def test_a_file_is_brought_whole_under_its_name(server, tmp_path):
    told = []
    path = get(want(server), tmp_path, lambda done, total: told.append((done, total)))
    assert path.read_bytes() == CONTENT
    assert files(tmp_path) == ["file.zip"]
    assert told[-1] == (len(CONTENT), len(CONTENT))


def test_a_cut_download_is_kept_apart_and_resumed_where_it_ended(server, tmp_path):
    server.cut = 30_000
    with pytest.raises(
        FetchError, match=r"ended before byte 102,400; 30,000 bytes are kept in .*file\.zip\.part"
    ):
        get(want(server), tmp_path)
    assert files(tmp_path) == ["file.zip.part", "file.zip.part.tag"]
    server.cut = None
    assert get(want(server), tmp_path).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=30000-"]
    assert files(tmp_path) == ["file.zip"]


def test_a_download_whose_last_byte_came_is_finished_without_a_new_one(server, tmp_path):
    part = tmp_path / "folder" / "file.zip.part"
    part.parent.mkdir()
    part.write_bytes(CONTENT)
    assert get(want(server), tmp_path).read_bytes() == CONTENT


def test_a_part_longer_than_the_file_is_started_over(server, tmp_path):
    part = tmp_path / "folder" / "file.zip.part"
    part.parent.mkdir()
    part.write_bytes(CONTENT + b"more")
    assert get(want(server), tmp_path).read_bytes() == CONTENT


def test_a_file_that_changed_on_the_server_is_not_joined_with_its_old_beginning(server, tmp_path):
    server.cut = 30_000
    with pytest.raises(FetchError):
        get(want(server), tmp_path)
    server.cut, server.content = None, CONTENT[::-1]
    assert get(want(server), tmp_path).read_bytes() == CONTENT[::-1]


def test_a_server_without_ranges_starts_over(server, tmp_path):
    server.cut = 30_000
    with pytest.raises(FetchError):
        get(want(server), tmp_path)
    server.cut, server.ranges = None, False
    assert get(want(server), tmp_path).read_bytes() == CONTENT


def test_a_wrong_checksum_is_refused_and_removed(server, tmp_path):
    with pytest.raises(FetchError, match=r"expected sha256 0123, found [0-9a-f]{64}; the copy was removed"):
        get(want(server, "0123"), tmp_path)
    assert not (tmp_path / "folder" / "file.zip").exists()
    assert "file.zip.part" not in files(tmp_path)


def test_a_size_that_is_not_told_is_trusted_to_a_checksum_only(server, tmp_path):
    server.size = False
    with pytest.raises(FetchError, match="doesn't tell the size"):
        get(want(server), tmp_path)
    assert not (tmp_path / "folder" / "file.zip").exists()
    right = hashlib.sha256(CONTENT).hexdigest()
    assert get(want(server, right), tmp_path).read_bytes() == CONTENT


def test_a_refusal_of_the_server_is_told(server, tmp_path):
    server.status = 403
    with pytest.raises(FetchError, match="the server answers 403 Forbidden; nothing was saved"):
        get(want(server), tmp_path)


def test_no_server_is_one_clear_line(server, tmp_path):
    nowhere = Download("http://127.0.0.1:9/file.zip", "folder/file.zip")
    with pytest.raises(FetchError, match=r"no connection.*nothing was saved") as refusal:
        get(nowhere, tmp_path)
    assert "\n" not in str(refusal.value)


def test_fetch_brings_only_what_is_not_here_and_refuses_what_is_not_the_one(server, tmp_path):
    source = Source(
        "page", "licence", "terms", downloads=(want(server, hashlib.sha256(CONTENT).hexdigest()),)
    )
    task = SimpleNamespace(name="small", source=source)
    assert fetch(task, tmp_path) == [tmp_path / "folder" / "file.zip"]
    assert fetch(task, tmp_path) == []
    assert server.asked == [None]
    (tmp_path / "folder" / "file.zip").write_bytes(b"mine")
    with pytest.raises(FetchError, match="is here but is not the published file"):
        fetch(task, tmp_path)
    assert (tmp_path / "folder" / "file.zip").read_bytes() == b"mine"


def test_a_folder_in_the_files_place_is_refused_before_anything_is_asked_for(server, tmp_path):
    source = Source("page", "licence", "terms", downloads=(want(server),))
    (tmp_path / "folder" / "file.zip").mkdir(parents=True)
    with pytest.raises(FetchError, match=r"file\.zip is a folder where a file is expected"):
        fetch(SimpleNamespace(name="small", source=source), tmp_path)
    assert server.asked == []
