"""Whole jobs on real repositories: what a change makes worse is found and explained, and what cannot be compared is told.

A job with a budget of nearly nothing runs one pair: counters and failures need no more.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

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
from model import Net


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


def guard(repo, *arguments, **environment):
    """What the verb prints, writes and ends with."""
    command = [sys.executable, "-m", "pyrometer", "guard", "check", *arguments]
    return subprocess.run(
        command, cwd=repo.root, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


def report_of(done):
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_a_copy_that_was_put_in_is_named_with_its_line(repo, tmp_path):
    repo.git("switch", "--quiet", "--create", "work")
    repo.commit({"model.py": CLONING})
    before = repo.state()
    files = [f"--{kind}={tmp_path / kind}" for kind in ("markdown", "junit", "sarif", "html")]
    done = guard(repo, "--json", "--budget", "1ms", "--no-store", *files)
    report = report_of(done)
    gates = {one["metric"]: one for one in report["gates"]}
    assert done.returncode == 1
    assert gates["copies"]["outcome"] == "regressed"
    assert gates["operators"]["why"][0]["text"] == "aten::clone: 0 → 1 calls per step"
    assert gates["operators"]["why"][0]["place"]["file"] == "model.py"
    assert gates["operators"]["why"][0]["place"]["line"] == 14
    assert gates["cosine"]["outcome"] == "unchanged"
    assert "aten::clone" in (tmp_path / "markdown").read_text()
    assert (tmp_path / "junit").exists()
    assert "aten::clone" in (tmp_path / "html").read_text()
    assert json.loads((tmp_path / "sarif").read_text())["runs"][0]["results"][0]["level"] == "error"
    assert repo.state() == before


def test_a_graph_break_is_a_gate_and_compiling_is_no_part_of_a_step(repo):
    repo.commit({"perf_model.py": COMPILED})
    repo.git("branch", "before")
    breaking = CLONING.replace("h = h.clone()", "print('step', end='')")
    repo.commit({"model.py": breaking})
    done = guard(repo, "--base", "before", "--json", "--budget", "1ms", "--no-store")
    gates = {one["metric"]: one for one in report_of(done)["gates"]}
    assert done.returncode == 1
    assert (gates["graph_breaks"]["base"], gates["graph_breaks"]["head"]) == (0, 1)
    assert gates["graph_breaks"]["outcome"] == "regressed"
    assert gates["graph_breaks"]["why"][0]["place"]["line"] == 14
    assert gates["recompiles"]["outcome"] == "unchanged"
    for side in ("base", "head"):
        assert 0 < gates["compile_s"][side] <= gates["first_call_s"][side]
        assert gates["median_s"][side] < gates["compile_s"][side] / 10


@pytest.mark.measuring
def test_a_slowdown_is_found_and_explained(repo):
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


def test_one_that_raises_on_the_head_never_passes(repo):
    repo.commit({"perf_model.py": PLAIN.format(n=10) + "\ndef perf_other():\n    sum(range(10))\n"})
    repo.git("branch", "before")
    repo.commit(
        {"perf_model.py": PLAIN.format(n=10) + "\ndef perf_other():\n    raise ValueError('broken')\n"}
    )
    done = guard(repo, "--base", "before", "--json", "--budget", "1ms", "--no-store", "--undecided", "pass")
    [missed] = report_of(done)["missed"]
    assert (missed["benchmark"], missed["side"], missed["failed"]) == (
        "perf_model.py::perf_other",
        "head",
        True,
    )
    assert "ValueError: broken" in missed["reason"]
    assert done.returncode == 2


def test_without_a_benchmark_in_common_there_is_no_data(repo):
    repo.git("branch", "before")
    repo.git("rm", "--quiet", "perf_model.py")
    repo.commit({"perf_other.py": PLAIN.format(n=10)})
    done = guard(repo, "--base", "before", "--json", "--no-store")
    report = report_of(done)
    assert done.returncode == 2
    assert report["gates"] == []
    assert {one["side"] for one in report["missed"]} == {"base", "head"}


def test_a_renamed_benchmark_is_compared_all_the_same(repo):
    repo.git("branch", "before")
    repo.git("mv", "perf_model.py", "perf_net.py")
    text = (repo.root / "perf_net.py").read_text().replace("perf_forward", "perf_inference")
    repo.commit({"perf_net.py": text, "model.py": CLONING, "perf_a.py": PLAIN.format(n=10)})
    done = guard(repo, "--base", "before", "--json", "--budget", "1ms", "--no-store", "-k", "forward or sum")
    report = report_of(done)
    gates = {one["metric"]: one for one in report["gates"]}
    assert {one["benchmark"] for one in report["gates"]} == {"perf_net.py::perf_inference"}
    assert report["renamed"] == {"perf_net.py::perf_inference": "perf_model.py::perf_forward"}
    assert "perf_net.py::perf_inference: renamed from perf_model.py::perf_forward" in report["notes"]
    assert [one["benchmark"] for one in report["missed"]] == ["perf_a.py::perf_sum"]
    assert gates["copies"]["outcome"] == "regressed"
    assert (
        gates["max_error"]["outcome"] == "unchanged"
    )  # its own outputs, although another benchmark comes first
    assert gates["median_s"]["log_ratios"]


def test_benchmarks_are_listed_by_their_names(repo):
    repo.commit({"perf_more.py": "import pyrometer as pm\n@pm.parametrize(n=[1, 2])\ndef perf_n(n): pass\n"})
    done = guard(repo, "--list", "-k", "not forward")
    assert done.stdout.split() == ["perf_more.py::perf_n[n=1]", "perf_more.py::perf_n[n=2]"]
    assert done.returncode == 0


def test_a_base_whose_environment_does_not_build_is_told_in_a_line(repo):
    repo.commit(
        {"pyproject.toml": "[project]\nname = 'x'\n[build-system]\nrequires = []\nbuild-backend = 'gone'\n"}
    )
    repo.git("branch", "before")
    repo.commit({"pyproject.toml": "[project]\nname = 'x'\nversion = '1'\n"})
    done = guard(repo, "--base", "before", "--env", "own", "--no-store", PIP_NO_INDEX="1")
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
        while not list(store.glob("unfinished/guard-*.jsonl")):
            assert child.poll() is None, child.stderr.read()
        child.send_signal(signal.SIGTERM)
        printed, _ = child.communicate()
    report = json.loads(printed)
    assert report["interrupted"]
    assert report["num_pairs"] >= 1
    assert child.returncode == 130
    assert repo.git("worktree", "list").count("\n") == 0


def test_code_that_would_be_the_same_on_both_sides_is_refused(repo, tmp_path):
    repo.commit({"python/other.py": "x = 1\n", "perf_model.py": "import other\ndef perf_x(): pass\n"})
    repo.git("branch", "before")
    done = guard(repo, "--base", "before", "--no-store", PYTHONPATH=str(repo.root / "python"))
    assert done.returncode == 2
    assert "both sides would run the same code; name the folder that it lies in" in done.stderr
