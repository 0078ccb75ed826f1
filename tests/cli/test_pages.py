"""`-o`: one behaviour of all verbs that write a page, and the same bytes from the verb and from `show`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click
import pytest
from representative import standing_for_all

from pyrometer.cli.main import VERBS, Verbs, main
from pyrometer.cli.pages import page_place
from pyrometer.errors import PyrometerError

MODEL = """
import torch
from torch import nn
import pyrometer as pm

def small():
    return pm.Inference(nn.Linear(64, 64), torch.randn(8, 64), unit="frames", per_step=8)

def compiled():
    return pm.Inference(nn.Sequential(nn.Linear(8, 8), nn.ReLU()), torch.randn(2, 8)).compiled(mode="default")

def never():
    raise AssertionError("measured although the page has no place")
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def one_line(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """Run a verb that must fail with exit code 2 and one line."""
    assert main(list(argv)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    return captured.err


def with_pages() -> list[str]:
    verbs = {name: Verbs().get_command(click.Context(click.Command("x")), name) for name in VERBS}
    return [name for name, verb in verbs.items() if verb and any(p.name == "page" for p in verb.params)]


ARGUMENTS = {"show": ["last"], "compare": ["a", "b"]}


def test_every_verb_that_makes_a_page_has_the_flag():
    assert set(with_pages()) == {
        "check",
        "bench",
        "trace",
        "compile",
        "memory",
        "audit",
        "scale",
        "show",
        "compare",
        "tune",
    }


@pytest.mark.parametrize("verb", with_pages())
def test_a_place_that_cannot_take_a_page_is_refused_before_anything_runs(project, capsys, verb):
    (project / "file").write_text("mine")
    (project / "folder").mkdir()
    called = ARGUMENTS.get(verb, ["model.py:never"])
    for place, said in (
        ("folder", "folder: is a folder; name a file in it, such as folder/report.html"),
        ("missing/", "missing/: names a folder"),
        ("file/page.html", "file/page.html: cannot be written (Not a directory)"),
        ("model.py", "model.py: is there already and is no report of ours"),
        ("-", "-o -: stdout has the summary"),
        ("page.json", "--json prints the data"),
        (f"{'a' * 300}.html", "cannot be written (File name too long)"),
    ):
        assert said in one_line(capsys, verb, *called, "-o", place)
    assert (project / "file").read_text() == "mine"
    assert (project / "model.py").read_text() == MODEL
    assert sorted(path.name for path in project.iterdir()) == ["file", "folder", "model.py"]


def test_a_folder_that_may_not_be_written_is_refused(project, monkeypatch):
    (project / "locked").mkdir()
    monkeypatch.setattr(
        os, "access", lambda path, mode: Path(path).name != "locked"
    )  # root may write everywhere
    with pytest.raises(PyrometerError, match="cannot be written"):
        page_place("locked/page.html")


def test_looking_at_a_place_makes_nothing(project):
    assert page_place("new/folder/page.html") == Path("new/folder/page.html")
    (project / "empty.html").touch()
    assert page_place("empty.html") == Path("empty.html")
    assert page_place("/dev/stdout") == Path("/dev/stdout")
    assert sorted(path.name for path in project.iterdir()) == ["empty.html", "model.py"]


MADE_BY = {
    "bench": ["bench", "model.py:small", "--budget", "300ms"],
    "bench --vs": ["bench", "model.py:small", "--vs", "model.py:small", "--budget", "300ms"],
    "bench --matrix": ["bench", "model.py:small", "--matrix", "batch=1,2", "--budget", "1s"],
    "check": ["check", "model.py:small", "--budget", "300ms"],
    "trace": ["trace", "model.py:small"],
    "memory": ["memory", "model.py:small", "--leaks", "3"],
    "compile": ["compile", "model.py:compiled"],
    "audit": ["audit", "model.py:small", "--budget", "300ms"],
}


@pytest.mark.slow
@pytest.mark.parametrize("argv", standing_for_all(MADE_BY, "bench --vs", "check"))
def test_the_page_of_a_verb_and_that_of_its_stored_run_are_the_same_bytes(project, capsys, monkeypatch, argv):
    monkeypatch.setattr(sys, "argv", ["pyrometer", *argv])
    assert main([*argv, "--store", "runs", "-o", "new/folder/now.html"]) in {0, 3}
    capsys.readouterr()
    assert main(["show", "last", "--store", "runs", "-o", "later.html"]) == 0
    assert (project / "new/folder/now.html").read_bytes() == (project / "later.html").read_bytes()
    assert main(["export", "last", "--store", "runs", "-o", "other/export.html"]) == 0
    assert (project / "other/export.html").read_bytes() == (project / "later.html").read_bytes()
    assert main(["show", "last", "--store", "runs", "-o", "later.html"]) == 0, "a page of ours is replaced"


@pytest.mark.exhaustive
def test_the_page_that_a_check_keeps_in_the_store_is_that_of_show(project, capsys):
    assert main(["check", "model.py:small", "--budget", "300ms", "--json"]) == 0
    kept = Path(json.loads(capsys.readouterr().out)["report_path"])
    assert main(["show", "last", "-o", "later.html"]) == 0
    assert kept.read_bytes() == (project / "later.html").read_bytes()


@pytest.mark.exhaustive
def test_a_page_that_fails_in_the_end_costs_no_result(project, capsys, monkeypatch):
    from pyrometer.errors import InputError

    def full(*_: object) -> None:
        raise InputError("page.html: cannot write the report (No space left on device); pass another place")

    monkeypatch.setattr("pyrometer.report.html.save_page", full)
    argv = ["bench", "model.py:small", "--budget", "300ms", "--no-store", "--json", "-o", "page.html"]
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out)["evidence"]["measurement"]["num_samples"] > 0
    assert captured.err.endswith(
        "error: page.html: cannot write the report (No space left on device); pass another place\n"
    )
    assert list(project.glob("*.html")) == []
