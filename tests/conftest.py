"""What every test may use: the folder of real data, and a browser, where there is one."""

import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
BESIDE = Path(__file__).parents[2] / "shared" / "data"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests on Spark say that they did not run where there is no Java."""
    if item.get_closest_marker("spark") and not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("there is no Java on this machine, Spark needs 17 or newer")


@pytest.fixture(scope="session")
def real_data() -> Callable[..., Path]:
    """`real_data("heloc/heloc_dataset_v1.csv")` is the root of the raw files, or skips if one isn't here."""
    root = Path(os.environ.get("PLOC_DATA") or BESIDE)

    def at(*files: str) -> Path:
        absent = [file for file in files if not (root / file).is_file()]
        if absent:
            pytest.skip(f"real data not here: {root / absent[0]} ($PLOC_DATA names another folder)")
        return root

    return at


class Page(HTMLParser):
    """A page's text, tags, anchors and links; fails where tags are not nested."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.said: list[str] = []
        self.feed(page)
        self.close()
        self.text = " ".join(" ".join(self.said).split())

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in {"meta", "link", "br"}:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.ids += [v for k, v in attrs if k == "id"]
        self.links += [v for k, v in attrs if k in {"href", "src", "xlink:href"} and v != "data:,"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.said.append(data)


@pytest.fixture(scope="session")
def parsed() -> type[Page]:
    """Reads a page of HTML."""
    return Page


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
    """Opens a page in Chromium at a width; the means to ask it, to call it, and what it told."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine")
    from websocket import create_connection

    folder = tmp_path_factory.mktemp("chromium")
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --remote-debugging-port=0 --remote-allow-origins=*"
    )
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [CHROMIUM, *flags.split(), f"--user-data-dir={folder / 'profile'}", "about:blank"],
            stderr=log, stdout=log, start_new_session=True,
        )  # fmt: skip
    port_file = folder / "profile" / "DevToolsActivePort"
    until = time.monotonic() + 60
    while not (port_file.exists() and "\n" in port_file.read_text()):
        assert time.monotonic() < until, (folder / "log").read_text()
        time.sleep(0.05)
    port = port_file.read_text().split("\n")[0]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
        address = next(t for t in json.load(answer) if t["type"] == "page")["webSocketDebuggerUrl"]
    socket = create_connection(address, timeout=60)
    told, number = [], 0

    def call(method, **parameters):
        nonlocal number
        number += 1
        socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(socket.recv())
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            told.append(message)

    def ask(expression):
        answer = call("Runtime.evaluate", expression=expression, returnByValue=True)["result"]
        return answer.get("value")

    def open_page(page, width):
        path = folder / "page.html"
        path.write_text(page, encoding="utf-8")
        told.clear()
        call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        call("Page.navigate", url=path.as_uri())
        while ask("document.readyState + location.protocol") != "completefile:":
            time.sleep(0.02)
        return ask, call, told

    for domain in ("Page", "Runtime", "Log", "Network"):
        call(f"{domain}.enable")
    yield open_page
    socket.close()
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
