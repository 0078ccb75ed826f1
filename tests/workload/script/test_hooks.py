"""What is put into torch: seen by nobody, taken out again, and left out where torch is not as expected."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from pyrometer.workload.script.child import Ended
from pyrometer.workload.script.events import Events, read_events
from pyrometer.workload.script.notes import notes_on
from pyrometer.workload.script.startup._pyrometer_inside import kinds
from pyrometer.workload.script.startup._pyrometer_inside.device_time import (
    MAX_PENDING,
    DeviceTime,
    device_time,
)
from pyrometer.workload.script.startup._pyrometer_inside.instrument import CannotInstrumentError, instrument
from pyrometer.workload.script.startup._pyrometer_inside.log import EventLog
from pyrometer.workload.script.startup._pyrometer_inside.memory import SHORTEST_INTERVAL_NS
from pyrometer.workload.script.startup._pyrometer_inside.observer import Observer
from pyrometer.workload.script.startup._pyrometer_inside.torch_hooks import install
from pyrometer.workload.script.steps import find_steps

PHASE_KINDS = range(1, kinds.LAST_PHASE_KIND + 1)


class Observed:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = EventLog(str(path))
        self.observer = Observer(self.log, torch)

    @property
    def events(self) -> Events:
        return read_events(self.path)

    @property
    def phases(self) -> list[int]:
        return self.events.of(*PHASE_KINDS).kind.tolist()


@pytest.fixture
def observed(tmp_path: Path) -> Iterator[Observed]:
    here = Observed(tmp_path / "events")
    switch, missing = install(torch, here.observer)
    assert missing == []
    yield here
    switch(False)


def test_everything_is_taken_out_again(tmp_path: Path) -> None:
    functions = [
        nn.Module.__call__,
        torch.autograd.graph._engine_run_backward,
        torch.utils.data.dataloader._BaseDataLoaderIter.__next__,
    ]
    optimizer_hooks = torch.optim.Optimizer.profile_hook_step.__globals__["_global_optimizer_pre_hooks"]
    codes = [f.__code__ for f in functions]
    names = [dict(f.__globals__) for f in functions]
    hooks = dict(optimizer_hooks)
    here = Observed(tmp_path / "events")
    switch, _ = install(torch, here.observer)
    assert all(f.__code__ is not code for f, code in zip(functions, codes, strict=True))
    switch(False)
    assert [f.__code__ for f in functions] == codes
    assert dict(optimizer_hooks) == hooks
    for function, earlier in zip(functions, names, strict=True):
        # No name is added or bound anew. One may have gone: Dynamo takes its own away when what it compiled dies.
        assert not [
            name for name, value in function.__globals__.items() if earlier.get(name, earlier) is not value
        ]
    nn.Linear(2, 2)(torch.ones(1, 2))
    assert here.phases == []


def test_an_instrumented_function_looks_as_before(observed: Observed) -> None:
    function = nn.Module.__call__
    assert function is nn.Module._wrapped_call_impl
    assert function.__qualname__ == "Module._wrapped_call_impl"
    assert "_pyrometer" not in inspect.getsource(function)
    assert str(inspect.signature(function)) == "(self, *args, **kwargs)"


def test_only_the_outermost_call_counts(observed: Observed) -> None:
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 2)), nn.ReLU())
    model(torch.ones(1, 2))
    assert observed.phases == [kinds.FORWARD_BEGIN, kinds.FORWARD_END]


def test_a_forward_that_raises_or_stops_ends_its_phase(observed: Observed) -> None:
    class Fails(nn.Module):
        def forward(self, error: type[Exception]) -> None:
            raise error

    for error in (ValueError, StopIteration, KeyboardInterrupt):
        with pytest.raises(error):
            Fails()(error)
    assert observed.phases == [kinds.FORWARD_BEGIN, kinds.FORWARD_END] * 3


def test_evaluation_is_marked(observed: Observed) -> None:
    model = nn.Linear(2, 2)
    model(torch.ones(1, 2))
    with torch.no_grad():
        model(torch.ones(1, 2))
    model.eval()(torch.ones(1, 2))
    assert observed.events.of(kinds.FORWARD_BEGIN).flags.tolist() == [0, kinds.EVALUATION, kinds.EVALUATION]


def test_memory_is_sampled_at_the_end_of_a_phase_and_seldom(observed: Observed) -> None:
    model = nn.Linear(2, 2)
    for _ in range(50):
        model(torch.ones(1, 2))
    samples, ends = observed.events.of(kinds.RESIDENT_BYTES), observed.events.of(kinds.FORWARD_END)
    assert set(samples.time_ns) <= set(ends.time_ns)
    assert samples.time_ns[0] == ends.time_ns[0]
    assert (np.diff(samples.time_ns) >= SHORTEST_INTERVAL_NS).all()
    assert (samples.value > 2**20).all()


def test_first_fetch_and_exhaustion_are_marked(observed: Observed) -> None:
    loader = DataLoader([1, 2], batch_size=1)
    assert [list(loader), list(loader)] == [[torch.tensor([1]), torch.tensor([2])]] * 2
    assert observed.events.of(kinds.DATA_BEGIN).flags.tolist() == [kinds.FIRST_FETCH, 0, 0] * 2
    assert observed.events.of(kinds.DATA_END).flags.tolist() == [0, 0, kinds.EXHAUSTED] * 2


def test_other_threads_are_counted_and_leave_the_phases_alone(observed: Observed) -> None:
    model = nn.Sequential(nn.Linear(2, 2))

    class Busy(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            threads = [threading.Thread(target=model, args=(x,)) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return x

    Busy()(torch.ones(1, 2))
    outside = threading.Thread(target=model, args=(torch.ones(1, 2),))
    outside.start()
    outside.join()
    assert observed.phases == [kinds.FORWARD_BEGIN, kinds.FORWARD_END]
    assert observed.observer.elsewhere > 0
    assert observed.observer.inside is False


def test_a_thread_that_alone_calls_modules_is_the_one_to_observe(observed: Observed) -> None:
    observed.log.add(kinds.TORCH_IMPORTED)
    model = nn.Linear(2, 2)

    def serve() -> None:
        for _ in range(5):
            model(torch.ones(1, 2))

    worker = threading.Thread(target=serve)
    worker.start()
    worker.join()
    model(torch.ones(1, 2))  # of the main thread, which came too late
    assert observed.phases == [kinds.FORWARD_BEGIN, kinds.FORWARD_END] * 3
    assert observed.observer.elsewhere == 3
    notes = notes_on(
        Ended(0, 1.0, interrupted=False, timed_out=False), observed.events, find_steps(observed.events)
    )
    assert any("another thread" in note for note in notes)


def test_every_hook_point_can_be_missed_in_words() -> None:
    rows = np.array(
        [(1, kinds.NOT_OBSERVED, 0, index) for index in range(len(kinds.HOOK_POINTS))], dtype=np.int64
    )
    events = Events(0, *rows.T)
    notes = notes_on(Ended(0, 1.0, interrupted=False, timed_out=False), events, find_steps(events))
    assert [
        point for point in kinds.HOOK_POINTS if not any(note.startswith(f"{point}:") for note in notes)
    ] == []


def test_detached_nothing_is_seen(observed: Observed) -> None:
    observed.observer.detach()
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert observed.phases == []


def test_a_function_that_is_not_what_its_source_says_is_left_alone(observed: Observed) -> None:
    namespace: dict[str, Any] = {"torch": torch}
    exec("def made(x):\n    return x", namespace)  # a function without a source file
    code = nn.Linear.forward.__code__
    changed = type(nn.Linear.forward)(
        code.replace(co_names=tuple("abcde")[: len(code.co_names)]), {"torch": torch}
    )
    for function in (namespace["made"], changed):
        with pytest.raises(CannotInstrumentError):
            instrument(function, kinds.FORWARD_BEGIN, observed.observer)


def test_a_torch_without_its_private_points_is_observed_as_far_as_possible(tmp_path: Path) -> None:
    here = Observed(tmp_path / "events")
    bare = SimpleNamespace(
        nn=torch.nn, autograd=SimpleNamespace(graph=None), utils=None, _C=None, optim=torch.optim
    )
    switch, missing = install(bare, here.observer)
    nn.Linear(2, 2)(torch.ones(1, 2))
    switch(False)
    assert missing == ["backward", "data loader", "torch.compile"]
    assert here.phases == [kinds.FORWARD_BEGIN, kinds.FORWARD_END]


class _Device:
    """A stand-in for torch.cuda, which this machine lacks: events happen when `now` has passed them."""

    def __init__(self) -> None:
        self.now = 0.0
        self.capturing = False

    def is_initialized(self) -> bool:
        return True

    def is_current_stream_capturing(self) -> bool:
        return self.capturing

    def Event(self, *, enable_timing: bool) -> SimpleNamespace:  # noqa: N802 - as in torch.cuda
        assert enable_timing
        event = SimpleNamespace(at=None)
        event.record = lambda: setattr(event, "at", self.now + 10.0)
        event.query = lambda: self.now >= event.at
        event.elapsed_time = lambda other: other.at - event.at
        return event


def test_device_time_is_read_when_it_is_known_and_never_waited_for(tmp_path: Path) -> None:
    log, device = EventLog(str(tmp_path / "events")), _Device()
    clock = DeviceTime(log, device)
    clock.boundary(kinds.FORWARD_END, 1)
    for step in range(1, 4):
        device.now = step * 5.0
        clock.boundary(kinds.OPTIMIZER_END, step * 100)
        clock.boundary(kinds.FORWARD_END, step * 100 + 1)
    assert len(read_events(tmp_path / "events").kind) == 0
    device.capturing = True
    clock.boundary(kinds.OPTIMIZER_END, 400)
    device.now = 100.0
    clock.resolve()
    read = read_events(tmp_path / "events")
    assert read.time_ns.tolist() == [200, 300]
    assert read.value.tolist() == [5_000_000, 5_000_000]


def test_a_device_that_never_answers_fills_no_memory(tmp_path: Path) -> None:
    clock = DeviceTime(EventLog(str(tmp_path / "events")), _Device())
    for step in range(MAX_PENDING + 10):
        clock.boundary(kinds.OPTIMIZER_END, step)
    assert len(clock._pending) == MAX_PENDING


def test_a_torch_without_cuda_has_no_device_time(tmp_path: Path) -> None:
    log = EventLog(str(tmp_path / "events"))
    version = SimpleNamespace(cuda=None, hip=None)
    assert device_time(log, SimpleNamespace(cuda=torch.cuda, version=version)) is None
