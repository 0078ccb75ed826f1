"""What was seen in a script reaches its evidence."""

from __future__ import annotations

from pathlib import Path

import pytest
from host_programs import Program, samples

from pyrometer.evidence.observers.host import host_of_script
from pyrometer.evidence.options import ObserveOptions
from pyrometer.evidence.script import observe_script
from pyrometer.record import to_json

SCRIPT = """\
import json
import torch

def encode(rows):
    for row in rows:
        json.dumps(row)

model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rows = [list(range(200)) for _ in range(60)]
for step in range(200):
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


@pytest.mark.slow
def test_a_script_is_sampled_after_its_trace(tmp_path: Path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    evidence = observe_script([str(script)], ObserveOptions(budget_s=5.0)).evidence
    assert evidence.host is not None
    assert {(line.where.file, line.where.line) for line in evidence.host.lines} >= {(str(script), 6)}
    loop = next(loop for loop in evidence.host.loops if loop.over == "rows")
    assert (loop.rounds_per_step, loop.entered_per_step) == (60, 1)
    assert evidence.program is not None
    assert [module.settings["in_features"] for module in evidence.program.modules] == [8]
    assert evidence.program.optimizer is not None
    assert (evidence.program.optimizer.type_name, evidence.program.optimizer.fused) == ("SGD", None)
