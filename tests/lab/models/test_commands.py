import pytest

from ploc_lab.cli import app


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch):
    monkeypatch.setenv("PLOC_WORK", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def run(line):
    return app(line, exit_on_error=False, result_action="return_value")


def test_train_prints_a_line_a_checkpoint_and_keeps_them(work, capsys):
    line = "train --only rand_hie --backbone mlp lightgbm --seeds 2 --limit 200"
    run(line)
    first = capsys.readouterr().out
    assert first.count("rand_hie") == 4
    assert first.count("200") == 4
    assert len(list((work / "checkpoints").rglob("card.json"))) == 4
    run(line)
    assert capsys.readouterr().out == first


def test_compare_prints_our_rows_for_any_data_set(capsys):
    run("compare --only rand_hie --backbone hist_gradient_boosting --seeds 1 --markdown")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| data set | backbone |  | Acc | F1 | AUROC | ECE |"
    assert lines[2].startswith("| rand_hie | hist_gradient_boosting | ours | 0.")


def test_tables_fit_80_columns_and_cut_no_name(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    run("train --only rand_hie_health --backbone tab_transformer:batch_1024 --seeds 1 --limit 200")
    run("compare --only rand_hie_health --backbone hist_gradient_boosting --seeds 2")
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1].split()[:4] == ["rand_hie_health", "tab_transformer:batch_1024", "0", "200"]
    assert "rand_hie_health, hist_gradient_boosting" in lines
    assert sum(line.count(" -> ") == 4 for line in lines) == 2  # ours and its spread, whole


def test_a_stand_in_is_called_one(capsys, real_data, monkeypatch):
    monkeypatch.setenv("PLOC_DATA", str(real_data("anes/anes_1952_2000.parquet")))
    run("train --only anes_1952_2000 --backbone mlp --seeds 1 --limit 200")
    assert "Stand-ins, not the paper's data: anes_1952_2000." in capsys.readouterr().out
    run("compare --only anes_1952_2000 --backbone hist_gradient_boosting --seeds 1")
    assert "anes_1952_2000 (a stand-in), hist_gradient_boosting" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("train --only mnist", "no data set is called 'mnist'"),
        ("train --only rand_hie --backbone resnet", "no backbone 'resnet'"),
        ("train --only rand_hie --backbone mlp --device abacus", "can't be trained on device 'abacus' here"),
    ],
)
def test_what_is_unknown_is_refused_by_name(line, message):
    with pytest.raises(ValueError, match=message):
        run(line)
