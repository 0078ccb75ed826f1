"""Whole jobs on real repositories: what a change makes worse is found and explained, and what cannot be compared is told.

A job with a budget of nearly nothing runs one pair: counters and failures need no more.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest
from services import until

pytestmark = pytest.mark.slow
PATIENCE_S = 600

CLONING = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(64, 128)
        self.b = nn.Linear(128, 10)

    def forward(self, x):
        h = torch.relu(self.a(x))
        h = h.clone()
        return self.b(h)
"""

COMPILED = """
import torch
from layers import Net


def perf_compiled():
    return torch.compile(Net(), backend="eager"), torch.randn(16, 64)
"""

PLAIN = """
def perf_sum():
    sum(range({n}))
"""

SLOWER = """
def perf_sum():
    sum(range(3000))
    for i in range(3000):
        str(i)
"""


def report_of(done):
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def guard(call):
    """What the verb prints and ends with; it starts processes of its own for what it measures."""
    return lambda repo, *arguments: call(repo.root, "guard", "check", *arguments)


def test_a_change_is_judged_benchmark_by_benchmark_with_the_line_that_is_to_blame(repo, guard, tmp_path):
    """A copy that was put in, in a benchmark with a new name; one that raises on the head; one that only the head has.

    And one that is compiled, whose graph the head breaks.
    """
    other = PLAIN.format(n=10).replace("perf_sum", "perf_other")
    plain = (repo.root / "model.py").read_text()
    repo.commit({"perf_other.py": other, "perf_compiled.py": COMPILED, "layers.py": plain})
    repo.git("switch", "--quiet", "--create", "work")
    repo.git("mv", "perf_model.py", "perf_net.py")
    renamed = (repo.root / "perf_net.py").read_text().replace("perf_forward", "perf_inference")
    raises = other.replace("sum(range(10))", "raise ValueError('broken')")
    breaking = CLONING.replace("h = h.clone()", "print('step', end='')")
    changed = {"perf_net.py": renamed, "model.py": CLONING, "perf_other.py": raises, "layers.py": breaking}
    repo.commit({**changed, "perf_a.py": PLAIN.format(n=10)})
    before = repo.state()
    files = [f"--{kind}={tmp_path / kind}" for kind in ("markdown", "junit", "sarif", "html")]
    chosen = ("-k", "forward or sum or other or compiled")
    done = guard(repo, "--json", "--budget", "1ms", "--no-store", "--undecided", "pass", *chosen, *files)
    report = report_of(done)
    assert done.returncode == 2, "what raises on the head never passes"
    assert repo.state() == before

    gates, compiled = (
        {one["metric"]: one for one in report["gates"] if one["benchmark"] == benchmark}
        for benchmark in ("perf_net.py::perf_inference", "perf_compiled.py::perf_compiled")
    )
    assert len(report["gates"]) == len(gates) + len(compiled)
    assert report["renamed"] == {"perf_net.py::perf_inference": "perf_model.py::perf_forward"}
    assert "perf_net.py::perf_inference: renamed from perf_model.py::perf_forward" in report["notes"]
    assert gates["copies"]["outcome"] == "regressed"
    assert gates["operators"]["why"][0]["text"] == "aten::clone: 0 → 1 calls per step"
    assert gates["operators"]["why"][0]["place"]["file"] == "model.py"
    assert gates["operators"]["why"][0]["place"]["line"] == 14
    # Its own outputs, although another benchmark comes first.
    assert gates["cosine"]["outcome"] == gates["max_error"]["outcome"] == "unchanged"
    assert gates["median_s"]["log_ratios"]

    assert (compiled["graph_breaks"]["base"], compiled["graph_breaks"]["head"]) == (0, 1)
    assert compiled["graph_breaks"]["outcome"] == "regressed"
    assert compiled["graph_breaks"]["why"][0]["place"]["line"] == 14
    assert compiled["recompiles"]["outcome"] == "unchanged"
    for side in ("base", "head"):  # compiling is no part of a step
        assert 0 < compiled["compile_s"][side] <= compiled["first_call_s"][side]
        assert compiled["median_s"][side] < compiled["compile_s"][side] / 10

    missed = {one["benchmark"]: one for one in report["missed"]}
    assert set(missed) == {"perf_a.py::perf_sum", "perf_other.py::perf_other"}
    failed = missed["perf_other.py::perf_other"]
    assert (failed["side"], failed["failed"]) == ("head", True)
    assert "ValueError: broken" in failed["reason"]

    assert "aten::clone" in (tmp_path / "markdown").read_text()
    assert (tmp_path / "junit").exists()
    assert "aten::clone" in (tmp_path / "html").read_text()
    results = json.loads((tmp_path / "sarif").read_text())["runs"][0]["results"]
    assert "error" in {result["level"] for result in results}


@pytest.mark.exhaustive  # a counter that regressed ends the job among environments, too
def test_a_pair_is_run_for_the_verdict_where_no_counter_regressed(repo, guard):
    repo.git("branch", "before")
    repo.commit({"notes.txt": "harmless"})
    done = guard(repo, "--base", "before", "--fail-fast", "--json", "--budget", "1ms", "--no-store")
    assert report_of(done)["num_pairs"] == 1


@pytest.mark.measuring
def test_a_slowdown_is_found_and_explained(repo, guard):
    repo.commit({"perf_model.py": PLAIN.format(n=3000)})
    repo.git("branch", "before")
    repo.commit({"perf_model.py": SLOWER})
    done = guard(repo, "--base", "before", "--json", "--no-store")
    report = report_of(done)
    median = next(one for one in report["gates"] if one["metric"] == "median_s")
    assert median["outcome"] == "regressed"
    assert median["ci_low"] > 1.05
    assert done.returncode == 1
    assert any((cause["place"] or {}).get("line") in {4, 5} for cause in median["why"])


def test_without_a_benchmark_in_common_there_is_no_data(repo, guard):
    repo.git("branch", "before")
    repo.git("rm", "--quiet", "perf_model.py")
    repo.commit({"perf_other.py": PLAIN.format(n=10)})
    done = guard(repo, "--base", "before", "--json", "--no-store")
    report = report_of(done)
    assert done.returncode == 2
    assert report["gates"] == []
    assert {one["side"] for one in report["missed"]} == {"base", "head"}


def test_benchmarks_are_listed_by_their_names(repo, guard):
    repo.commit({"perf_more.py": "import pyrometer as pm\n@pm.parametrize(n=[1, 2])\ndef perf_n(n): pass\n"})
    done = guard(repo, "--list", "-k", "not forward")
    assert done.stdout.split() == ["perf_more.py::perf_n[n=1]", "perf_more.py::perf_n[n=2]"]
    assert done.returncode == 0


@pytest.mark.exhaustive  # as for requirements.txt, among environments
def test_a_base_whose_environment_does_not_build_is_told_in_a_line(repo, guard, monkeypatch):
    repo.commit(
        {"pyproject.toml": "[project]\nname = 'x'\n[build-system]\nrequires = []\nbuild-backend = 'gone'\n"}
    )
    repo.git("branch", "before")
    repo.commit({"pyproject.toml": "[project]\nname = 'x'\nversion = '1'\n"})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    done = guard(repo, "--base", "before", "--env", "own", "--no-store")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error: base: its environment does not build:")
    assert repo.git("worktree", "list").count("\n") == 0


def test_a_job_that_is_ended_keeps_what_it_has_and_removes_its_trees(repo):
    repo.commit({"perf_model.py": PLAIN.format(n=1000)})
    repo.git("branch", "before")
    command = [sys.executable, "-m", "pyrometer", "guard", "check", "--base", "before", "--json"]
    store = repo.root / ".pyrometer"
    with subprocess.Popen(
        command, cwd=repo.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        until(
            lambda: list(store.glob("unfinished/guard-*.jsonl")) or child.poll() is not None,
            "a first pair", PATIENCE_S,
        )  # fmt: skip
        assert child.poll() is None, child.stderr.read()
        child.send_signal(signal.SIGTERM)
        printed, _ = child.communicate()
    report = json.loads(printed)
    assert report["interrupted"]
    assert report["num_pairs"] >= 1
    assert child.returncode == 130
    assert repo.git("worktree", "list").count("\n") == 0


def test_code_that_would_be_the_same_on_both_sides_is_refused(repo, guard, monkeypatch):
    repo.commit({"python/other.py": "x = 1\n", "perf_model.py": "import other\ndef perf_x(): pass\n"})
    repo.git("branch", "before")
    monkeypatch.setenv("PYTHONPATH", str(repo.root / "python"))
    done = guard(repo, "--base", "before", "--no-store")
    assert done.returncode == 2
    assert "both sides would run the same code; name the folder that it lies in" in done.stderr
