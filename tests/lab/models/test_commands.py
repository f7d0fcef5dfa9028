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
