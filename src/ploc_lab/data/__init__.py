"""The laboratory's data: every data set by name, the one it claims to be or a refusal."""

import inspect
import zlib
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl

from ploc_lab import paths
from ploc_lab.data import cache, cifar10, encode, splits
from ploc_lab.data.dataset import Dataset, Part
from ploc_lab.data.schema import Fingerprint, Table, Task, WrongDataError
from ploc_lab.data.stream import SealedError, Stream

__all__ = [
    "Dataset",
    "Fingerprint",
    "Part",
    "SealedError",
    "Stream",
    "Task",
    "WrongDataError",
    "load",
    "missing",
    "names",
    "numbers",
    "task",
]

# The paper's five first, in the order of its tables; then their stand-ins; then what comes with the package.
_REGISTRY = {
    "heloc": "heloc:TASK",
    "diabetes_readmission": "diabetes_readmission:TASK",
    "anes": "anes:TASK",
    "assistments": "assistments:TASK",
    "acs_pubcov": "acs_pubcov:TASK",
    "anes_1952_2000": "anes_1952_2000:TASK",
    "anes_presidential": "anes_presidential:TASK",
    "acs_pubcov_2018": "acs_pubcov_2018:TASK",
    "rand_hie": "rand_hie:RAND_HIE",
    "rand_hie_health": "rand_hie:RAND_HIE_HEALTH",
    "cifar10": "cifar10:TASK",
}


def names() -> tuple[str, ...]:
    """All data sets, in the order of the tables."""
    return tuple(_REGISTRY)


def task(name: str) -> Task:
    """What a data set is: source, terms, columns, fingerprint; nothing is read."""
    if name.startswith("cifar10_"):
        return cifar10.two_class(name)
    if name not in _REGISTRY:
        raise ValueError(f"no data set is called {name!r}; there are: {', '.join(_REGISTRY)}")
    module, _, attribute = _REGISTRY[name].partition(":")
    found: Task = getattr(import_module(f"{__name__}.{module}"), attribute)
    return found


def missing(name: str, root: Path | None = None) -> list[Path]:
    """The raw files of a data set that are not here."""
    return [path for path in _files(task(name), root) if not path.is_file()]


def load(name: str, root: Path | None = None, fingerprint: Fingerprint | None = None) -> Dataset:
    """Read, check, split and encode a data set; the next call takes it from the cache.

    `root` is the folder of the raw files, `paths.data_root()` unless given. The table must have the data
    set's fingerprint; a test on a small file of the same shape passes that file's own.

    >>> ds = load("rand_hie")
    >>> ds, len(ds.part("train")), ds.prior.round(2)
    (Dataset('rand_hie', rows=20190, d=8), 14242, array([0.66, 0.34]))
    """
    chosen = task(name)
    files = _here(chosen, root)
    if chosen.load is not None:
        ds = chosen.load(chosen, files, official=fingerprint is None)
        _check(chosen, fingerprint, _found(ds), files)
        return ds
    folder = _folder(chosen, files)
    kept = cache.read(folder)
    arrays, card, digest = kept or _build(chosen, files)
    _check(chosen, fingerprint, {**card["found"], **_sums(arrays)}, files)
    if kept is None:
        cache.write(folder, arrays, card, digest)
    table = encode.Encoded(
        arrays["numeric"], arrays["codes"], arrays["passthrough"], arrays["widths"], tuple(card["columns"])
    )
    return Dataset(chosen, table, arrays, digest)


def numbers(name: str, root: Path | None = None) -> dict[str, float]:
    """What a fingerprint is written from: the numbers of the file at hand, be it the right one or not.

    >>> found = numbers("rand_hie")
    >>> found["rows"], found["ood_test"], found["positive ood_test"], found["width"]
    (20190, 2148, 1077, 8)
    """
    chosen = task(name)
    files = _here(chosen, root)
    if chosen.load is not None:
        return _found(chosen.load(chosen, files, official=False))
    arrays, card, _ = cache.read(_folder(chosen, files)) or _build(chosen, files)
    return {**card["found"], **_sums(arrays)}


def _here(chosen: Task, root: Path | None) -> list[Path]:
    """The raw files, or a refusal that names the first that is not here."""
    if absent := missing(chosen.name, root):
        what = "is a folder where a file is expected" if absent[0].is_dir() else "is not here"
        raise FileNotFoundError(
            f"{chosen.name}: {absent[0]} {what}"
            f"{f' (and {len(absent) - 1} more)' if len(absent) > 1 else ''}; "
            f"`ploc-lab data fetch {chosen.name}` gets it or says how, $PLOC_DATA names another folder"
        )
    return _files(chosen, root)


def _folder(chosen: Task, files: list[Path]) -> Path:
    """Where the encoded table is kept: by the content of the raw files and of the code that reads them."""
    key = cache.key([*files, *_code(chosen)])
    return paths.work_root() / "cache" / f"{chosen.name}-{key[:16]}"


def _files(chosen: Task, root: Path | None) -> list[Path]:
    """The raw files; an absolute path (a file that comes with the package) stays what it is."""
    return [(root or paths.data_root()) / file for file in chosen.files]


def _code(chosen: Task) -> list[Path]:
    """The source files that a table depends on: the encoder, the reader, and what of ours the reader uses."""
    reader = inspect.getmodule(chosen.read)
    used = (part for part in vars(reader).values() if inspect.ismodule(part))
    ours = (part for part in used if part.__name__.startswith("ploc"))
    return [Path(inspect.getfile(part)) for part in (encode, splits, reader, *ours) if part]


def _build(chosen: Task, files: list[Path]) -> cache.Kept:
    """Read, split and encode: rows lie part after part, so that every part is one slice."""
    try:
        table = chosen.read(files)
        _whole(table)
        parts = splits.split(table.ood)
        order = np.concatenate([parts[name] for name in splits.NAMES])
        encoded = encode.encode(table.features, chosen.columns, parts["train"], order)
    except (pl.exceptions.PolarsError, ValueError, zlib.error) as error:
        why = str(error).partition("\n")[0]  # what polars adds is about its own options
        if isinstance(error, WrongDataError) and str(files[0].parent) in why:
            raise
        raise WrongDataError(f"{files[0]} can't be read as {chosen.name}: {why}") from error
    target = parts["ood_test"]
    keys = (target,) if table.time is None else (target, table.time[target])
    arrays: cache.Arrays = {
        "numeric": encoded.numeric,
        "codes": encoded.codes,
        "passthrough": encoded.passthrough,
        "widths": encoded.widths,
        "y": table.y[order].astype(np.uint8),
        "sizes": np.array([len(parts[name]) for name in splits.NAMES]),
        "position": order.astype(np.int32),
        "time_order": np.lexsort(keys).astype(np.int32),
    }
    found: dict[str, float] = {"rows": len(order), "width": encoded.d}
    for name in splits.NAMES:
        y = table.y[parts[name]]
        found |= {name: len(y), f"positive {name}": int(y.sum()), f"rate {name}": float(y.mean())}
    card = {"name": chosen.name, "columns": list(encoded.columns), "found": found}
    return arrays, card, cache.digest(arrays, card)


def _whole(table: Table) -> None:
    """Refuse a table whose label or domain is not known of every row."""
    for what, flags in (("label", table.y), ("domain", table.ood)):
        if len(flags) != len(table.features):
            raise WrongDataError(f"{len(table.features)} rows have {len(flags)} values of the {what}")
        if flags.dtype != np.bool_:
            row = next((row for row, flag in enumerate(flags) if not isinstance(flag, bool)), 0)
            raise WrongDataError(
                f"the {what} must be true or false in every row, it is {flags[row]!r} in row {row}"
            )


def _sums(arrays: cache.Arrays) -> dict[str, float]:
    """Two numbers that a table with other cells in it doesn't have, whatever machine encoded it."""
    return {
        "sum of |numbers|": float(np.abs(arrays["numeric"]).sum(dtype=np.float64)),
        "sum of codes": int(arrays["codes"].sum(dtype=np.int64)),
    }


def _found(ds: Dataset) -> dict[str, float]:
    """The numbers of a data set of images that its fingerprint is compared with."""
    parts = {name: ds.part(name) for name in ds.splits}
    return {
        "rows": len(ds),
        "width": ds.d,
        "classes": len(ds.prior),
        **{name: len(part) for name, part in parts.items()},
    }


def _check(chosen: Task, other: Fingerprint | None, found: Mapping[str, float], files: list[Path]) -> None:
    """Refuse a table that is not the one, with all that differs."""
    differences = (other or chosen.fingerprint).differences(found)
    if differences:
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        raise WrongDataError(
            f"{files[0]}{more}: not the {chosen.name} of the study; {'; '.join(differences)}. "
            f"`ploc-lab data fetch {chosen.name}` says where the right one comes from",
            differences,
        )
