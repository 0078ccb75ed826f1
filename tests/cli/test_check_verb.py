"""`check` on real programs, through the real command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from pyrometer.cli.failing import failing
from pyrometer.evidence.observed import Observed
from pyrometer.report.schema import schema_of
from recorded import checked, evidence_of

MODEL = """
import torch
from torch import nn
import pyrometer as pm

def small():
    print("a factory that prints")
    return pm.Inference(nn.Linear(64, 64), torch.randn(8, 64), unit="frames", per_step=8)
"""
SCRIPT = """
import sys, torch
from torch import nn
m = nn.Linear(8, 2)
o = torch.optim.SGD(m.parameters(), 0.1)
for i in range(40):
    o.zero_grad(); m(torch.randn(4, 8)).sum().backward(); o.step()
print('done', sys.argv[1:])
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def project(tmp_path) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def test_check_writes_a_report(project, call):
    done = call(project, "check", "model.py:small", "--budget", "1s", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema_of("check"))
    assert document["diagnosis"]["reading"][0]["question"] == "Is the measurement itself sound?"
    assert {"evidence", "diagnosis", "report_path"} <= set(document)
    assert {"measurement", "memory", "environment"} <= set(document["evidence"])
    page = (project / document["report_path"]).read_text()
    assert document["run_id"] in page
    assert 'data-block="trace/0"' in page


def test_check_writes_where_it_is_told(project, call, monkeypatch):
    seen = Observed(evidence=evidence_of("rows"))
    monkeypatch.setattr("pyrometer.evidence.observe.observe", lambda *_: seen)
    done = call(project, "check", "model.py:small", "-o", "out/r.html", "--no-store")
    assert done.returncode == 0, done.stderr
    assert (project / "out/r.html").is_file()
    assert not (project / ".pyrometer").exists()
    assert "per step" in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["error"], 1, "--fail-on error: 1 finding (PYR509)"),
        (["warning"], 1, "--fail-on warning: 3 findings (PYR509, PYR109, PYR111)"),
        (["PYR3,python-loop-over-dimension"], 1, "(PYR109)"),
        (["PYR301", "PYR2"], 0, ""),
        ([], 0, ""),
    ],
)
def test_fail_on_names_what_ends_with_one(words, code, told, capsys):
    diagnosis = checked("rows").diagnosis
    assert failing(words)(diagnosis) == code
    assert told in capsys.readouterr().err


def test_fail_on_is_refused_before_anything_is_measured(project, call):
    done = call(project, "check", "model.py:small", "--fail-on", "PYR101,PYR999")
    assert done.returncode == 2
    assert done.stderr.startswith("error: --fail-on: PYR999: no such rule")
    assert done.stderr.count("\n") == 1


def test_a_check_ends_with_what_fail_on_says(project, call, monkeypatch):
    seen = Observed(evidence=evidence_of("rows"))
    monkeypatch.setattr("pyrometer.evidence.observe.observe", lambda *_: seen)
    done = call(project, "check", "model.py:small", "--no-store", "--fail-on", "warning", "--json")
    assert done.returncode == 1
    assert "--fail-on warning:" in done.stderr
    assert json.loads(done.stdout)["diagnosis"]["findings"]


@pytest.mark.slow
def test_a_check_of_what_is_not_compiled_imports_neither_compiler_nor_scipy(project):
    """They take longer to import than torch itself."""
    code = (
        "import sys\nfrom pyrometer.cli.main import main\n"
        "assert main(['check', 'model.py:small', '--budget', '200ms', '--no-store', '--json']) == 0\n"
        "heavy = {'torch._inductor', 'torch._dynamo', 'scipy.stats', 'scipy.special', 'pandas'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=project
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.exhaustive
def test_a_script_is_checked_and_its_stdout_is_its_own(project, call):
    (project / "train.py").write_text(SCRIPT)
    done = call(project, "check", "train.py", "--", "0")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done ['0']\n"
    assert "/step" in done.stderr


@pytest.mark.slow
def test_a_checked_script_keeps_its_exit_code_beside_one_document(project, call):
    (project / "train.py").write_text(SCRIPT)
    failed = call(project, "check", "train.py", "--json", "--", "7")
    assert failed.returncode == 7, "the exit code is the script's own"
    document = json.loads(failed.stdout)
    assert document["evidence"]["script"]["exit_code"] == 7
    assert document["evidence"]["script"]["num_steps"] == 40
    assert {"forward", "backward", "optimizer"} <= {
        phase["name"] for phase in document["evidence"]["measurement"]["phases"]
    }
    assert sum(phase["share"] for phase in document["evidence"]["measurement"]["phases"]) == pytest.approx(1)
