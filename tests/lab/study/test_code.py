from pathlib import Path

import pytest

from ploc_lab.study import code


def test_comments_docstrings_and_layout_do_not_count():
    bare = "def f(x):\n    return x + 1\n"
    dressed = '# why\ndef f( x ):  # here\n    """Docs."""\n    return (x\n        + 1)\n'
    assert code.normal(dressed) == code.normal('def f(x):\n    """Other."""\n    return x + 1\n')
    assert code.normal(bare) != code.normal(bare.replace("1", "2"))


def test_types_of_a_signature_do_not_count_and_defaults_do():
    assert code.normal("def f(x: int = 1) -> int: ...") == code.normal("def f(x=1): ...")
    assert code.normal("def f(x=1): ...") != code.normal("def f(x=2): ...")


def test_a_string_that_is_no_docstring_counts():
    assert code.normal("x = 'a'") != code.normal("x = 'b'")


def test_what_a_method_says_of_itself_does_not_count_and_its_options_do():
    method = "class Tent:\n    info = Card(at_one='{}')\n    lr = {}\n"
    assert code.normal(method.format("steps", 1)) == code.normal(method.format("takes a step", 1))
    assert code.normal(method.format("steps", 1)) != code.normal(method.format("steps", 2))
    assert code.normal("Needs = Literal['a']") == code.normal("Needs = Literal['a', 'b']")


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A house of three modules, `a` importing `b`, whose files a test may change."""
    texts = {
        "ploc_lab.a": "from ploc_lab.b import f\nimport numpy\n",
        "ploc_lab.b": "from ploc_lab import c\n\ndef f():\n    return c.N\n",
        "ploc_lab.c": "N = 1\n",
    }

    def write(name: str, text: str) -> None:
        (tmp_path / name).write_text(text)
        code._read.cache_clear()

    for name, text in texts.items():
        write(name, text)
    monkeypatch.setattr(code, "_path", lambda name: path if (path := tmp_path / name).exists() else None)
    yield write
    code._read.cache_clear()


def test_what_is_imported_counts_however_far(house):
    before = code.digest("ploc_lab.a")
    house("ploc_lab.c", "N = 2\n")
    after = code.digest("ploc_lab.a")
    assert after != before
    house("ploc_lab.c", "N = 1  # as it was\n")
    assert code.digest("ploc_lab.a") == before


def test_what_is_not_imported_does_not_count(house):
    before = code.digest("ploc_lab.c")
    house("ploc_lab.a", "X = 5\n")
    assert code.digest("ploc_lab.c") == before


def test_a_module_of_its_own_does_not_rest_on_what_it_imports(house):
    before = code.own("ploc_lab.a", "ploc_lab.c")
    house("ploc_lab.b", "def f():\n    return 7\n")
    assert code.own("ploc_lab.a", "ploc_lab.c") == before
    house("ploc_lab.c", "N = 2\n")
    assert code.own("ploc_lab.a", "ploc_lab.c") != before


def test_a_module_without_source_is_refused(house):
    with pytest.raises(ValueError, match=r"'ploc_lab\.nowhere'"):
        code.digest("ploc_lab.nowhere")


def test_ploc_rests_on_the_library_and_the_source_method_does_not_rest_on_origins():
    assert code.digest("ploc_lab.methods.ploc") != code.digest("ploc_lab.methods.source")
