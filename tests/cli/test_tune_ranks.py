"""`pyrometer tune SCRIPT --nproc N`: what it refuses, before anything is started."""

from __future__ import annotations

import pytest

from pyrometer.cli.main import main
from pyrometer.tuning.ranks import held


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print('runs')\n\n\ndef work():\n    return None\n")


def said(capsys, *arguments):
    code = main(["tune", *arguments, "--no-store"])
    return code, capsys.readouterr().err.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train.py", "--nproc", "1"], "--nproc: got 1; one rank sends nothing"),
        (["train.py", "--nproc", "0"], "--nproc: got 0; one rank sends nothing"),
        (
            ["train.py:work", "--nproc", "2"],
            "is a workload, of one process; name the script that torchrun would start",
        ),
        (
            ["train.py", "--nproc", "2", "--only", "compile"],
            "lever compile: it is for one process; leave out --nproc",
        ),
        (["train.py:work", "--only", "ddp_fp16"], "lever ddp_fp16: it is for many ranks; pass --nproc"),
        (["train.py", "--nproc", "2", "--apply"], "train.recipe.toml: cannot be read: No such file"),
    ],
)
def test_what_cannot_be_tuned_is_told_in_a_line(arguments, words, script, capsys):
    code, line = said(capsys, *arguments)
    assert code == 2
    assert line.startswith("error: ")
    assert words in line


def test_without_torchrun_it_says_what_to_install(script, capsys, monkeypatch):
    monkeypatch.setattr(held, "LAUNCHER", "torch.distributed.no_such_launcher")
    code, line = said(capsys, "train.py", "--nproc", "2")
    assert code == 2
    assert "no_such_launcher (torchrun) is missing in this torch" in line
