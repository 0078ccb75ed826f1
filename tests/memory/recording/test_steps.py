"""Recording a workload: two independent accounts agree to the byte, and the user's objects are as before."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from pyrometer.errors import UserProgramError
from pyrometer.memory.ledger.reading import held_by_place, ledger_of, phase_at
from pyrometer.memory.ledger.replay import timeline_of
from pyrometer.memory.recording.allocation import AllocationLog
from pyrometer.memory.recording.allocator import record_allocator
from pyrometer.memory.recording.steps import record_steps
from pyrometer.workload.call import Call
from pyrometer.workload.inference import Inference
from pyrometer.workload.training import Training


class Attention(nn.Module):
    """A block as in any transformer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.MultiheadAttention(width, 4, batch_first=True)
        self.grow = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        x = x + self.mix(y, y, y, need_weights=False)[0]
        return x + self.grow(x)


def transformer() -> nn.Module:
    return nn.Sequential(nn.Embedding(100, 64), Attention(64), Attention(64), nn.Linear(64, 100))


def block() -> nn.Module:
    return nn.Sequential(
        nn.Embedding(100, 64), nn.LayerNorm(64), nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 100)
    )


def convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(1024, 100),
    )


def cross_entropy(model: nn.Module, batch: Any) -> torch.Tensor:
    logits = model(batch[0])
    return functional.cross_entropy(logits.flatten(0, -2), batch[1].flatten())


def training(
    kind: str, optimizer: type[torch.optim.Optimizer] = torch.optim.AdamW, **settings: Any
) -> Training:
    torch.manual_seed(0)
    if kind in {"transformer", "block"}:
        model = transformer() if kind == "transformer" else block()
        batch = torch.randint(100, (4, 32)), torch.randint(100, (4, 32))
    else:
        model, batch = convolutions(), (torch.randn(4, 3, 16, 16), torch.randint(100, (4,)))
    return Training(model, cross_entropy, optimizer(model.parameters(), lr=1e-3), [batch], **settings)  # type: ignore[call-arg]


CASES = {
    "transformer": {"kind": "transformer"},
    "transformer, SGD": {"kind": "transformer", "optimizer": torch.optim.SGD},
    "transformer, bfloat16": {"kind": "transformer", "amp": "bfloat16"},
    "transformer, accumulated": {"kind": "transformer", "accumulate": 3},
    "convolutions": {"kind": "convolutions"},
    "convolutions, bfloat16": {"kind": "convolutions", "amp": "bfloat16"},
}


def at_peak(log: AllocationLog) -> dict[str, int]:
    return ledger_of(log.live_at(log.peak_event))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_operators_and_allocator_agree(case: dict[str, Any]) -> None:
    watched = record_steps(training(**case))
    account = record_allocator(training(**case), steps=2)
    # What the allocator gave beyond is scratch memory inside of operators, such as oneDNN's packed bfloat16 weights.
    assert watched.peak_bytes <= account.peak_bytes <= 1.05 * watched.peak_bytes
    assert at_peak(watched)["unknown"] == at_peak(account)["unknown"] == 0
    for category in ("parameters", "optimizer", "inputs"):
        assert at_peak(watched)[category] == at_peak(account)[category]


def test_to_the_byte_for_a_transformer() -> None:
    watched = record_steps(training("transformer"))
    account = record_allocator(training("transformer"), steps=2)
    assert watched.peak_bytes == account.peak_bytes
    assert at_peak(watched) == at_peak(account)
    assert watched.live_bytes == account.live_bytes


def test_inference_has_no_gradients_and_no_state() -> None:
    log = record_steps(Inference(transformer(), torch.randint(100, (4, 32))))
    ledger = at_peak(log)
    assert ledger["gradients"] == ledger["optimizer"] == ledger["activations"] == ledger["unknown"] == 0
    assert ledger["parameters"] == sum(p.nbytes for p in transformer().parameters())
    assert ledger["inputs"] == 4 * 32 * 8
    assert ledger["temporaries"] > 0


def test_batches_that_a_loader_makes_are_inputs() -> None:
    data = torch.utils.data.TensorDataset(torch.randn(64, 3, 16, 16), torch.randint(100, (64,)))
    model = convolutions()
    loader = torch.utils.data.DataLoader(data, batch_size=16)
    work = Training(model, nn.functional.cross_entropy, torch.optim.SGD(model.parameters(), lr=0.1), loader)
    ledger = at_peak(record_steps(work))
    dataset = 64 * 3 * 16 * 16 * 4 + 64 * 8
    assert ledger["inputs"] >= dataset + 16 * 3 * 16 * 16 * 4
    assert ledger["unknown"] == 0


def test_a_function_with_its_own_loop_is_understood() -> None:
    torch.manual_seed(0)
    model = transformer()
    optimizer = torch.optim.AdamW(model.parameters())
    batch = torch.randint(100, (4, 32)), torch.randint(100, (4, 32))

    def step() -> None:
        cross_entropy(model, batch).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()

    log = record_steps(Call(step))
    ledger = at_peak(log)
    assert ledger["parameters"] == sum(p.nbytes for p in model.parameters())
    state = [allocation for allocation in log.allocations if allocation.settled == "optimizer"]
    assert sum(allocation.nbytes for allocation in state) >= 2 * ledger["parameters"]
    assert any(allocation.settled == "gradients" for allocation in log.allocations)
    assert ledger["activations"] > 0


def test_transforms_that_refuse_hooks_are_recorded_without() -> None:
    weight = torch.randn(16, 16)

    def step() -> torch.Tensor:
        return torch.func.grad(lambda w: (w @ w).sum())(weight)

    for log in (record_steps(Call(step)), record_allocator(Call(step), steps=2)):
        assert log.peak_bytes > weight.nbytes
        assert any("torch.func" in note for note in log.notes)


def test_a_step_that_raises_is_the_users_failure() -> None:
    def step() -> None:
        raise ValueError("no such batch")

    with pytest.raises(UserProgramError, match="no such batch"):
        record_steps(Call(step))


def test_parameters_gradients_and_modes_are_as_before() -> None:
    work = training("convolutions")
    model = work.parts.model.eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    record_steps(work)
    record_allocator(work, steps=1)
    assert not model.training
    assert all(p.grad is None for p in model.parameters())
    assert not work.parts.optimizer.state
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_the_timeline_keeps_the_peak_and_its_phase() -> None:
    log = record_steps(training("transformer"))
    timeline = timeline_of(log, most=50)
    assert len(timeline.event) <= 60
    assert max(timeline.total_bytes) == log.peak_bytes
    columns = list(timeline.category_bytes.values())
    assert [sum(column) for column in zip(*columns, strict=True)] == timeline.total_bytes
    phase = phase_at(log, log.peak_event)
    assert phase is not None
    span = next(
        span
        for span in reversed(timeline.phases)
        if timeline.event[span.first] <= log.peak_event <= timeline.event[span.last]
    )
    assert span.name == phase.name


def test_what_holds_the_peak_adds_up() -> None:
    log = record_steps(training("transformer"))
    held = held_by_place(log.live_at(log.peak_event))
    assert sum(one.bytes for one in held) == log.peak_bytes
    ledger = at_peak(log)
    by_category = {name: sum(one.bytes for one in held if one.category == name) for name in ledger}
    assert by_category == ledger  # a line with bytes of several categories is told once for each
    assert [one.bytes for one in held] == sorted((one.bytes for one in held), reverse=True)
    grown = next(one for one in held if one.module == "1.grow.0")
    assert grown.source == "return x + self.grow(x)"
    assert grown.category == "activations"


@pytest.mark.slow
def test_compiled_code_has_a_ledger_too() -> None:
    eager = record_allocator(training("block"), steps=2)
    compiled = record_allocator(training("block").compiled(), steps=2, warm=1)
    ours, theirs = at_peak(compiled), at_peak(eager)
    for category in ("parameters", "optimizer", "inputs"):
        assert ours[category] == theirs[category]
    assert ours["unknown"] == 0
    assert 0 < ours["activations"] <= 1.2 * theirs["activations"]
