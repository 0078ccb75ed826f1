"""`pyrometer compile` through the real command line: workloads, scripts, logs, limits, what is refused."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from compiler_fixtures import fresh_dynamo

from pyrometer.cli.main import main
from pyrometer.report.schema import schema_of

__all__ = ["fresh_dynamo"]  # holds for every test here

CONTRACT = {
    "graphs", "frames", "skipped_frames", "breaks", "recompiles", "limit_reached", "guards", "cost", "passes", "fusions",
    "cache", "artifact_bytes", "error", "unavailable",
}  # fmt: skip
WORK = """
import torch
from torch import nn
import pyrometer as pm

class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x):
        y = self.layer(x).abs()
        if y.sum() > 0:
            y = y * 2
        return y

def broken():
    print("a factory that prints")
    torch.manual_seed(0)
    return pm.Inference(torch.compile(Branching(), backend="aot_eager"), torch.randn(4, 16))

def varying():
    return pm.Inference(torch.compile(nn.Linear(16, 16), backend="aot_eager"), [(4, 16), (6, 16), (9, 16)])

def whole():
    return pm.Inference(torch.compile(Branching(), backend="eager", fullgraph=True), torch.randn(4, 16))

def raises():
    def fail(x):
        raise ValueError("no such split")
    return pm.Call(fail, torch.ones(2))
"""
SCRIPT = """
import sys, torch
def step(x):
    y = x + 1
    print("in the middle")
    return y * 2
compiled = torch.compile(step, backend="aot_eager")
for n in (3, 3, 4):
    compiled(torch.ones(n))
print("done", sys.argv[1:])
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("programs")
    (place / "work.py").write_text(WORK)
    (place / "script.py").write_text(SCRIPT)
    return place


def run(folder, *arguments, env=None):
    return subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from pyrometer.cli.main import run; run()",
            "compile",
            *arguments,
        ],
        cwd=folder,
        env=os.environ | {"COLUMNS": "120", "NO_COLOR": "1"} | (env or {}),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def broken(folder):
    """One run that many tests look at: stored, exported, as a page and as JSON."""
    done = run(
        folder,
        "work.py:broken",
        "--json",
        "--budget",
        "1s",
        "-o",
        "page.html",
        "--export",
        "out",
        "--limit",
        "breaks=0",
    )
    return done, json.loads(done.stdout)


def test_json_holds_the_contract_and_fits_its_schema(broken):
    done, document = broken
    compiled = document["evidence"]["compiled"]
    assert compiled.keys() >= CONTRACT
    jsonschema.validate(document, schema_of("compile"))
    assert (compiled["graphs"], compiled["frames"], compiled["skipped_frames"]) == (2, 2, 0)
    (graph_break,) = compiled["breaks"]
    assert (graph_break["id"], Path(graph_break["file"]).name, graph_break["line"]) == (
        "gb0170",
        "work.py",
        13,
    )
    assert graph_break["source"] == "if y.sum() > 0:"
    assert compiled["error"]["within_tolerance"]
    assert compiled["cost"]["steady_s"] > 0 < compiled["cost"]["eager_steady_s"]
    assert "a factory that prints" in done.stderr


def test_a_limit_that_is_exceeded_is_told_and_is_the_exit_code(broken):
    done, document = broken
    assert done.returncode == 1
    assert "work.py:13" in document["over_budget"][0]


def test_files_asked_for_are_written(broken, folder):
    assert "Graph breaks, and what to write instead" in (folder / "page.html").read_text()
    names = {path.suffix for path in (folder / "out").rglob("*") if path.is_file()}
    assert names >= {".svg", ".dot", ".txt", ".log"}


def test_a_stored_run_can_be_looked_at_again(broken, folder, call):
    _, document = broken
    done = call(folder, "show", document["run_id"])
    assert done.returncode == 0, done.stderr
    assert "Data-dependent branching" in done.stdout


def test_a_log_tells_the_same_breaks(broken, folder, call):
    _, document = broken
    done = call(folder, "compile", "out", "--json", "--no-store")
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert [
        (graph_break["id"], graph_break["line"]) for graph_break in found["evidence"]["compiled"]["breaks"]
    ] == [
        (graph_break["id"], graph_break["line"]) for graph_break in document["evidence"]["compiled"]["breaks"]
    ]
    assert found["evidence"]["environment"] is None
    assert found["evidence"]["compiled"]["cost"]["steady_s"] is None


@pytest.mark.slow
def test_recompilations_name_the_input_and_what_changed_since_an_earlier_report_is_told(broken, folder, call):
    (folder / "before.json").write_text(json.dumps(broken[1]))
    done = call(
        folder,
        "compile",
        "work.py:varying",
        "--json",
        "--budget",
        "1s",
        "--no-store",
        "--limit",
        "recompiles=0,graphs=9",
        "--diff",
        "before.json",
    )
    document = json.loads(done.stdout)
    assert done.returncode == 1
    (change,) = document["evidence"]["compiled"]["recompiles"][0]["changed_inputs"]
    assert (change["kind"], change["before"], change["after"]) == ("size", ["4"], "6")
    assert len(document["over_budget"]) == 1
    assert [one["id"] for one in document["diff"]["breaks_removed"]] == ["gb0170"]
    assert document["diff"]["breaks_added"] == []


@pytest.mark.exhaustive
def test_the_answer_comes_first_and_without_source_nothing_of_it_is_told(folder, call):
    done = call(folder, "compile", "work.py:broken", "--budget", "1s", "--no-store", "--no-source")
    assert done.returncode == 0, done.stderr
    first, *rest = done.stdout.splitlines()
    assert first == "work.py:broken   2 graphs · 1 break · 0 recompilations"
    assert any(line.endswith("work.py:13 in forward") for line in rest)
    assert "y.sum()" not in done.stdout
    assert str(folder) not in done.stdout


@pytest.mark.slow
def test_a_script_runs_as_it_is_and_keeps_its_exit_code_beside_one_document(folder, call):
    done = call(folder, "compile", "script.py", "--json", "--no-store", "--", "3")
    assert done.returncode == 3
    document = json.loads(done.stdout)
    assert [Path(graph_break["file"]).name for graph_break in document["evidence"]["compiled"]["breaks"]] == [
        "script.py"
    ]
    assert len(document["evidence"]["compiled"]["recompiles"]) >= 1
    assert "done ['3']" in done.stderr


@pytest.mark.exhaustive
def test_a_script_is_told_beside_its_own_output(folder, call):
    shown = call(folder, "compile", "script.py", "--no-store", "--", "0")
    assert shown.stdout.splitlines()[-1] == "done ['0']"
    assert "4 graphs · 1 break · 2 recompilations" in shown.stderr
    assert "script.py:5 in step" in shown.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["work.py:broken", "--limit", "brakes=0"], "legal are breaks=N"),
        (["work.py:broken", "--limit", "breaks=few"], "whole number"),
        (["work.py:broken", "--limit", "compile=soon"], "soon"),
        (["work.py:broken", "--no-source", "--export", "x"], "--no-source"),
        (["work.py:broken", "--diff", "nowhere"], "nowhere|no runs are stored"),
        (["work.py:missing"], "missing"),
        (["nowhere.log"], "no such file"),
        (["script.py", "--with", "deep"], "--with"),
        (["work.py:broken", "--with", "depth"], "legal are deep, rewrites, modes"),
        (["work.py:broken", "--mode", "fast"], "fast"),
        (["work.py:broken", "--shapes", "nowhere.jsonl", "--no-store"], "nowhere.jsonl"),
    ],
)
def test_bad_input_is_one_line(folder, arguments, said, capfd, monkeypatch):
    monkeypatch.chdir(folder)
    assert main(["compile", *arguments]) == 2
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith(("error:", "Error:"))]
    assert len(lines) == 1
    assert re.search(said, lines[0])


@pytest.mark.exhaustive
def test_a_program_that_fails_is_the_users(folder, call):
    done = call(folder, "compile", "work.py:raises", "--no-store")
    assert done.returncode == 4
    assert "no such split" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_program_that_fails_only_compiled_is_reported_and_exits_4(folder, monkeypatch, capfd):
    monkeypatch.chdir(folder)
    assert main(["compile", "work.py:whole", "--no-store", "--budget", "0.2s"]) == 4
    assert "compiling failed" in capfd.readouterr().out
