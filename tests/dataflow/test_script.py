"""Values followed inside of a script, between the ends of its steps."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.overrides import BaseTorchFunctionMode
from torch.utils._python_dispatch import _get_current_dispatch_mode

from pyrometer.dataflow.report import DataflowReport
from pyrometer.dataflow.script import STEPS, StepFlow, follow_values
from pyrometer.errors import InputError
from pyrometer.record import from_json
from pyrometer.workload.program.record import Program


def test_some_steps_are_recorded_and_written_and_then_torch_is_as_before(tmp_path: Path) -> None:
    path = tmp_path / "flow.json"
    head, hidden = nn.Linear(4, 50), torch.rand(8, 4)
    flow = follow_values(torch, {"path": str(path), "program": str(tmp_path / "program.json")})
    steps = 0
    while flow.next_step():
        assert not path.exists()
        head(hidden)[:2].sum().backward()
        head.zero_grad()
        steps += 1
    assert steps == STEPS
    assert _get_current_dispatch_mode() is None
    report = from_json(DataflowReport, path.read_bytes())
    assert report.num_steps == STEPS
    assert [fact.used for fact in report.partly_used] == [0.25]


def test_a_script_that_ends_early_leaves_no_report_and_no_mode(tmp_path: Path) -> None:
    flow = StepFlow(tmp_path / "flow.json", tmp_path / "program.json")
    assert flow.next_step()
    torch.ones(3) * 2
    flow.stop()
    flow.stop()
    assert _get_current_dispatch_mode() is None
    assert not (tmp_path / "flow.json").exists()


def test_a_mode_of_the_scripts_own_is_left_alone(tmp_path: Path) -> None:
    flow = StepFlow(tmp_path / "flow.json", tmp_path / "program.json")
    other = StepFlow(tmp_path / "other.json", tmp_path / "program.json")
    assert other.next_step()
    with pytest.raises(InputError, match="has a mode of torch on"):
        flow.next_step()
    other.stop()


def test_a_function_mode_of_the_scripts_own_is_left_alone_and_a_default_device_is_none(
    tmp_path: Path,
) -> None:
    flow = StepFlow(tmp_path / "flow.json", tmp_path / "program.json")
    with BaseTorchFunctionMode(), pytest.raises(InputError, match="has a mode of torch on"):
        flow.next_step()
    with torch.device("cpu"):
        assert flow.next_step()
        flow.stop()


def test_a_forked_child_records_no_more(tmp_path: Path) -> None:
    flow = StepFlow(tmp_path / "flow.json", tmp_path / "program.json")
    flow.next_step()
    flow.detach()
    torch.ones(3) * 2
    for _ in range(STEPS):
        flow.next_step()
    flow.stop()
    assert from_json(DataflowReport, (tmp_path / "flow.json").read_bytes()).calls_per_step == 0


def test_a_step_may_end_within_a_hook_of_an_optimizer(tmp_path: Path) -> None:
    scaled, weight = nn.PReLU(), nn.Parameter(torch.ones(3))
    optimizer, flow = (
        torch.optim.SGD([weight], lr=0.1),
        StepFlow(tmp_path / "flow.json", tmp_path / "program.json"),
    )
    handle = register_optimizer_step_post_hook(lambda *_: flow.next_step())  # type: ignore[arg-type,func-returns-value]
    try:
        for _ in range(STEPS + 1):
            optimizer.zero_grad()
            flow.module(scaled)
            scaled(weight).sum().backward()
            flow.optimizer(optimizer)
            optimizer.step()
    finally:
        handle.remove()
        flow.stop()
    assert from_json(DataflowReport, (tmp_path / "flow.json").read_bytes()).num_steps == STEPS
    program = from_json(Program, (tmp_path / "program.json").read_bytes())
    assert (program.kind, [fact.type_name for fact in program.modules]) == ("training", ["PReLU"])
    assert program.optimizer is not None
    assert (program.optimizer.type_name, program.optimizer.num_parameters) == ("SGD", 3)
