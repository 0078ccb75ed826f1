"""What was seen in a script reaches its evidence."""

from __future__ import annotations

from pathlib import Path

import pytest
from host_programs import Program, samples

from pyrometer.evidence.evidence import Evidence
from pyrometer.evidence.observers.host import host_of_script
from pyrometer.evidence.options import ObserveOptions
from pyrometer.evidence.script import observe_script
from pyrometer.record import to_json

NUM_STEPS = 200
SCRIPT = f"""\
import json
import torch

def encode(rows):
    for row in rows:
        json.dumps(row)

model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rows = [list(range(200)) for _ in range(60)]
for step in range({NUM_STEPS}):
    loss = model(torch.ones(4, 8)).sum()
    loss.backward()
    encode(rows)
    optimizer.step()
    optimizer.zero_grad()
"""


def test_a_written_file_becomes_a_profile(tmp_path: Path):
    program = Program(tmp_path / "program.py", "def step():\n    return sorted([2, 1])\n")
    file = tmp_path / "host.json"
    file.write_bytes(to_json(samples((5, [program.at("step", "sorted")]))))
    profile, notes = host_of_script(file)
    assert profile is not None
    assert (profile.lines[0].where.line, notes) == (2, [])


def test_without_a_file_nothing_is_said(tmp_path: Path):
    assert host_of_script(tmp_path / "host.json") == (None, [])


def test_a_failure_is_told(tmp_path: Path):
    (tmp_path / "host.json.failure").write_text("ValueError: no")
    profile, notes = host_of_script(tmp_path / "host.json")
    assert profile is None
    assert notes == ["where the host's time goes was not sampled: ValueError: no"]


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scripts") / "train.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture(scope="module")
def evidence(script: Path) -> Evidence:
    return observe_script([str(script)], ObserveOptions(budget_s=5.0, confidence=0.99)).evidence


@pytest.mark.slow
def test_a_check_of_a_script_says_where_its_step_goes(evidence: Evidence):
    assert evidence.script is not None
    assert evidence.script.exit_code == 0
    assert evidence.compiled is None
    assert evidence.trace is not None
    assert evidence.measurement is not None
    assert evidence.measurement.num_samples + evidence.measurement.warmup_steps < NUM_STEPS - len(
        evidence.trace.steps
    )
    assert evidence.trace_verdict is not None
    names = {phase.name for phase in evidence.trace.phases.phases}
    assert {"forward", "backward", "optimizer"} <= names
    assert any(Path(line.file or "").name == "train.py" for line in evidence.trace.top_lines)


@pytest.mark.slow
def test_a_script_is_sampled_after_its_trace(evidence: Evidence, script: Path):
    assert evidence.host is not None
    assert {(line.where.file, line.where.line) for line in evidence.host.lines} >= {(str(script), 6)}
    loop = next(loop for loop in evidence.host.loops if loop.over == "rows")
    assert (loop.rounds_per_step, loop.entered_per_step) == (60, 1)
    assert evidence.program is not None
    assert [module.settings["in_features"] for module in evidence.program.modules] == [8]
    assert evidence.program.optimizer is not None
    assert (evidence.program.optimizer.type_name, evidence.program.optimizer.fused) == ("SGD", None)
