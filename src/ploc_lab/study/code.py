"""Which code a result rests on: one digest of a module and of everything it imports from this repository."""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

HOUSE = ("ploc", "ploc_lab")
# What these rooms decide enters a cell's key by itself: options, data fingerprint, checkpoint hashes.
ELSEWHERE = frozenset({"ploc_lab.methods", "ploc_lab.data", "ploc_lab.models", "ploc_lab.paths"})


def digest(*modules: str) -> str:
    """A hash of what the code of these modules does: comments, docstrings, cards, types, layout don't count.

    >>> digest("ploc.links") == digest("ploc.links")
    True
    """
    seen: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in seen or name in ELSEWHERE:
            continue
        seen[name], imported = _read(name)
        waiting += imported
    text = "\n".join(f"{name} {seen[name]}" for name in sorted(seen))
    return hashlib.sha256(text.encode()).hexdigest()


def own(*modules: str) -> str:
    """A hash of what the code of these modules alone does, whatever they import."""
    return hashlib.sha256("\n".join(_read(name)[0] for name in modules).encode()).hexdigest()


def normal(source: str) -> str:
    """The meaning of a source text: its syntax tree without docstrings, cards, types and positions."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
            node.body
            and isinstance(node.body[0], ast.Expr)
            and isinstance(node.body[0].value, ast.Constant)
            and isinstance(node.body[0].value.value, str)
        ):
            node.body[0].value.value = ""
        if isinstance(node, ast.Module | ast.ClassDef):
            node.body = [statement for statement in node.body if not _words(statement)]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    return ast.dump(tree)


def _words(statement: ast.stmt) -> bool:
    """Whether a statement is there for readers alone: a method's card, or the name of a type."""
    match statement:
        case ast.Assign(value=ast.Call(func=ast.Name("Card")) | ast.Subscript(value=ast.Name("Literal"))):
            return True
        case _:
            return False


@cache
def _read(name: str) -> tuple[str, tuple[str, ...]]:
    path = _path(name)
    if path is None:
        raise ValueError(f"no source file for module {name!r}: a result can't be tied to its code")
    source = path.read_text(encoding="utf-8")
    return hashlib.sha256(normal(source).encode()).hexdigest(), tuple(_imports(ast.parse(source)))


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _ours(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module and _ours(node.module):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if _path(inner) else node.module


def _ours(name: str) -> bool:
    return name.split(".", 1)[0] in HOUSE


@cache
def _path(name: str) -> Path | None:
    try:
        spec = find_spec(name)
    except (ModuleNotFoundError, AttributeError):  # "package.attribute" is no module
        return None
    return Path(spec.origin) if spec is not None and spec.origin else None
