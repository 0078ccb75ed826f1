"""Every storage is seen from its birth to its death, and is known by what it is for."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from pyrometer.memory.ledger.reading import ledger_of, place_of
from pyrometer.memory.recording.allocation import Allocation, AllocationLog
from pyrometer.memory.recording.recorder import AllocationRecorder
from pyrometer.workload.whereabouts.lines import site_of

CPU = torch.device("cpu")
KIB = 1024


def recorded(run: Any, **settings: Any) -> AllocationLog:
    with AllocationRecorder(CPU, **settings) as recorder:
        run(recorder)
        recorder.end_phase("rest", step=0)
    return recorder.log


def test_a_storage_is_counted_once_however_many_views_it_has() -> None:
    def run(_: AllocationRecorder) -> None:
        base = torch.zeros(256)
        views = [base[i:] for i in range(10)]
        assert len(views) == 10
        assert base.reshape(16, 16).t() is not base

    log = recorded(run)
    assert log.peak_bytes == KIB
    assert [allocation.nbytes for allocation in log.allocations] == [KIB]
    assert log.live_bytes == 0


def test_a_view_keeps_the_whole_storage_alive() -> None:
    kept: list[torch.Tensor] = []
    log = recorded(lambda _: kept.append(torch.zeros(256)[:1]))
    assert log.live_bytes == KIB


def test_the_peak_is_the_largest_sum_at_one_instant() -> None:
    def run(_: AllocationRecorder) -> None:
        first = torch.zeros(256)
        second = torch.zeros(512)
        del first
        third = torch.zeros(256)
        del second, third

    log = recorded(run)
    assert log.peak_bytes == 3 * KIB
    assert sum(allocation.nbytes for allocation in log.live_at(log.peak_event)) == 3 * KIB


def test_addresses_that_are_used_again_are_new_allocations() -> None:
    def run(_: AllocationRecorder) -> None:
        for _i in range(50):
            torch.zeros(256)

    log = recorded(run)
    assert len(log.allocations) == 50
    assert log.peak_bytes == KIB
    assert all(allocation.died is not None for allocation in log.allocations)


def test_a_storage_that_grows_is_freed_and_made_anew() -> None:
    def run(_: AllocationRecorder) -> None:
        tensor = torch.zeros(256)
        tensor.resize_(1024)
        assert tensor.untyped_storage().nbytes() == 4 * KIB

    log = recorded(run)
    assert [allocation.nbytes for allocation in log.allocations] == [KIB, 4 * KIB]
    assert log.live_bytes == 0


def test_what_was_there_before_is_told_from_what_was_allocated() -> None:
    table = torch.zeros(256)
    log = recorded(lambda _: torch.add(table, 1))
    there, made = log.allocations
    assert (there.preexisting, there.settled, there.died) == (True, "unknown", None)
    assert (made.preexisting, made.settled) == (False, "temporaries")
    assert log.peak_bytes == 2 * KIB


def test_sparse_tensors_count_with_indices_and_values() -> None:
    def run(_: AllocationRecorder) -> None:
        indices = torch.tensor([[0, 1], [1, 0]])
        values = torch.ones(2)
        sparse = torch.sparse_coo_tensor(indices, values, (2, 2), check_invariants=False)
        assert sparse.is_sparse

    assert recorded(run).peak_bytes == 2 * 2 * 8 + 2 * 4


class Twice(nn.Module):
    """Two layers, one of them within a module of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(16, 64), nn.ReLU())
        self.head = nn.Linear(64, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.inner(x)
        return self.head(hidden)  # type: ignore[no-any-return]


@pytest.fixture
def trained() -> AllocationLog:
    torch.manual_seed(0)
    model = Twice()
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(32, 16)
    with AllocationRecorder(CPU) as recorder:
        recorder.register([x], "inputs")
        for step in range(2):
            loss = model(x).sum()
            recorder.end_phase("forward", step=step)
            loss.backward()
            recorder.end_phase("backward", step=step)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            recorder.end_phase("optimizer", step=step)
            del loss
        recorder.end_phase("rest", step=1)
    return recorder.log


def parameter_bytes() -> int:
    return sum(p.nbytes for p in Twice().parameters())


def test_categories_of_a_training_step_are_exact(trained: AllocationLog) -> None:
    gradients = [allocation for allocation in trained.allocations if allocation.settled == "gradients"]
    state = [
        allocation
        for allocation in trained.allocations
        if allocation.settled == "optimizer" and allocation.nbytes > 4
    ]
    assert (
        sum(allocation.nbytes for allocation in trained.allocations if allocation.settled == "parameters")
        == parameter_bytes()
    )
    assert sum(gradient.nbytes for gradient in gradients) == 2 * parameter_bytes()
    assert sum(allocation.nbytes for allocation in state) == 2 * parameter_bytes()
    assert all(gradient.died is not None for gradient in gradients)
    assert all(allocation.died is None for allocation in state)
    assert (
        sum(allocation.nbytes for allocation in trained.allocations if allocation.settled == "inputs")
        == 32 * 16 * 4
    )
    assert sum(ledger_of(trained.live_at(trained.peak_event)).values()) == trained.peak_bytes
    assert ledger_of(trained.live_at(trained.peak_event))["unknown"] == 0


def test_what_autograd_saved_is_an_activation(trained: AllocationLog) -> None:
    # addmm saves its input, which relu made; relu saves its result, the same storage.
    saved = [allocation for allocation in trained.allocations if allocation.settled == "activations"]
    assert [allocation.nbytes for allocation in saved if allocation.step == 0] == [32 * 64 * 4]


def test_models_and_optimizers_need_not_be_registered(trained: AllocationLog) -> None:
    assert not [allocation for allocation in trained.allocations if allocation.settled == "unknown"]


def test_lines_and_modules_are_those_of_the_user(trained: AllocationLog) -> None:
    (hidden,) = [
        allocation
        for allocation in trained.allocations
        if allocation.settled == "activations" and allocation.step == 0
    ]
    assert hidden.origin.module == "inner.1"
    assert hidden.origin.point is not None
    site = site_of(hidden.origin.point)
    assert (site.function, site.source) == ("Twice.forward", "hidden = self.inner(x)")
    assert place_of(hidden).startswith(__file__)


def test_the_backward_pass_is_ascribed_to_the_forward_line_and_module(trained: AllocationLog) -> None:
    weights = [
        allocation
        for allocation in trained.allocations
        if allocation.nbytes == 16 * 64 * 4 and allocation.phase == "backward" and allocation.step == 0
    ]
    assert weights
    for weight in weights:
        assert weight.origin.module == "inner.0"
        assert weight.origin.node == "AddmmBackward0"
        assert weight.origin.point is not None
        assert site_of(weight.origin.point).source == "hidden = self.inner(x)"


def test_recomputed_activations_are_no_temporaries() -> None:
    layer = nn.Sequential(nn.Linear(16, 256), nn.GELU(), nn.Linear(256, 16))
    x = torch.randn(64, 16, requires_grad=True)

    def run(recorder: AllocationRecorder) -> None:
        loss = checkpoint(layer, x, use_reentrant=False).sum()
        recorder.end_phase("forward", step=0)
        loss.backward()
        recorder.end_phase("backward", step=0)

    log = recorded(run)
    again = [allocation for allocation in log.allocations if allocation.recomputed]
    assert again
    assert {allocation.settled for allocation in again} <= {"activations", "gradients"}
    assert all(allocation.phase == "backward" for allocation in again)
    kept = [
        allocation
        for allocation in log.allocations
        if allocation.phase == "forward" and allocation.saved and allocation.nbytes >= 64 * 256 * 4
    ]
    assert not kept


def test_master_weights_are_what_only_the_optimizer_knows() -> None:
    model = nn.Linear(64, 64, bias=False).to(torch.bfloat16)
    master = [p.detach().float().requires_grad_() for p in model.parameters()]
    optimizer = torch.optim.SGD(master, lr=0.1)

    def run(_: AllocationRecorder) -> None:
        model(torch.ones(4, 64, dtype=torch.bfloat16)).float().sum().backward()
        for copy, parameter in zip(master, model.parameters(), strict=True):
            assert parameter.grad is not None
            copy.grad = parameter.grad.float()
        optimizer.step()

    ledger = ledger_of(recorded(run).allocations)
    assert ledger["parameters"] == 64 * 64 * 2
    assert ledger["master"] == 64 * 64 * 4


def test_results_and_gradients_are_bitwise_the_same() -> None:
    def step() -> list[torch.Tensor]:
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 8))
        optimizer = torch.optim.AdamW(model.parameters())
        model(torch.randn(4, 8)).pow(2).mean().backward()
        gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        optimizer.step()
        return gradients + [p.detach().clone() for p in model.parameters()]

    plain = step()
    with AllocationRecorder(CPU):
        watched = step()
    assert all(torch.equal(a, b) for a, b in zip(plain, watched, strict=True))


def test_nothing_is_kept_alive_by_the_recording() -> None:
    with AllocationRecorder(CPU) as recorder:
        tensor = torch.zeros(64)
        weak = weakref.ref(tensor)
        graph = torch.ones(64, requires_grad=True).exp()  # never backward
        weak_graph = weakref.ref(graph)
        del tensor, graph
        assert weak() is None
        assert weak_graph() is None
    assert recorder.log.live_bytes == 0
    gc.collect()


def test_frees_after_the_recording_are_not_of_it() -> None:
    with AllocationRecorder(CPU) as recorder:
        kept = torch.zeros(256)
    events = len(recorder.log.events)
    del kept
    assert len(recorder.log.events) == events


def test_everything_is_taken_out_again_after_an_exception() -> None:
    model = nn.Linear(4, 4)
    recorder = AllocationRecorder(CPU)

    def fail() -> None:
        with recorder:
            recorder.know_model(model)
            model(torch.ones(3, 5))

    with pytest.raises(RuntimeError, match="mat1"):
        fail()
    assert not model.weight._post_accumulate_grad_hooks  # type: ignore[attr-defined]
    assert recorder.modules.innermost is None
    count = len(recorder.log.allocations)
    torch.ones(3)
    assert len(recorder.log.allocations) == count


def test_other_devices_are_left_out() -> None:
    with AllocationRecorder(torch.device("cuda")) as recorder:
        torch.zeros(256)
    assert recorder.log.allocations == []


def test_a_phase_is_that_of_the_birth(trained: AllocationLog) -> None:
    phases = {
        allocation.settled: allocation.phase
        for allocation in trained.allocations
        if not allocation.preexisting
    }
    assert phases["gradients"] == "backward"
    assert phases["optimizer"] == "optimizer"
    assert phases["activations"] == "forward"
    assert [(phase.name, phase.step) for phase in trained.phases[:4]] == [
        ("forward", 0),
        ("backward", 0),
        ("optimizer", 0),
        ("forward", 1),
    ]


def test_an_allocation_lives_between_its_events() -> None:
    log = AllocationLog()
    allocation = Allocation(8, 0, None, "float32")  # type: ignore[arg-type]
    log.born(allocation)
    log.died(0)
    assert [allocation.alive_after(event) for event in (-1, 0, 1)] == [False, True, False]
