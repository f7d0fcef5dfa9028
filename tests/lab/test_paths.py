from pathlib import Path

from ploc_lab import paths


def test_data_root_is_the_variable_else_a_cache_folder_of_ours(monkeypatch, tmp_path):
    monkeypatch.setenv("PLOC_DATA", str(tmp_path))
    assert paths.data_root() == tmp_path
    monkeypatch.delenv("PLOC_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("sys.platform", "linux")
    assert paths.data_root() == tmp_path / "cache" / "ploc"


def test_each_system_has_its_own_cache_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("PLOC_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr("sys.platform", "darwin")
    assert paths.data_root() == tmp_path / "Library" / "Caches" / "ploc"
    monkeypatch.setattr("sys.platform", "linux")
    assert paths.data_root() == tmp_path / ".cache" / "ploc"
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert paths.data_root() == tmp_path / "local" / "ploc"


def test_work_root_is_the_variable_else_work_here(monkeypatch, tmp_path):
    monkeypatch.setenv("PLOC_WORK", str(tmp_path))
    assert paths.work_root() == tmp_path
    monkeypatch.delenv("PLOC_WORK")
    assert paths.work_root() == Path.cwd() / "work"
