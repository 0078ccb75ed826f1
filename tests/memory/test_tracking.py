"""A block or a function says what it did to memory."""

from __future__ import annotations

import mmap
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from pyrometer.errors import BudgetExceededError, InputError
from pyrometer.memory.tracking import MOST_KEPT, track_memory
from pyrometer.record import from_json, to_json

MIB = 2**20


def test_what_a_block_adds_is_exact() -> None:
    before = torch.zeros(4 * MIB // 4)
    with track_memory("attention") as tracked:
        first = before + 1
        second = first + 1
        del first
    assert tracked.last.name == "attention"
    assert (tracked.last.peak_bytes, tracked.last.kept_bytes) == (8 * MIB, 4 * MIB)
    assert tracked.last.at_peak[0].site.startswith(__file__)
    assert second is not before


def test_tensors_of_before_are_no_part_of_what_was_added() -> None:
    early, late = torch.zeros(MIB), torch.zeros(MIB)
    with track_memory() as tracked:
        early + 1
        late + 1
    assert (tracked.last.peak_bytes, tracked.last.kept_bytes) == (4 * MIB, 0)
    assert tracked.last.ledger_bytes["unknown"] == 4 * MIB  # only the first had been seen at the peak


def test_a_step_of_training_has_a_ledger() -> None:
    model = nn.Linear(512, 512)
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(64, 512)

    @track_memory()
    def step() -> None:
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    step()
    first, second = step.memory.history  # type: ignore[attr-defined]
    parameters = sum(p.nbytes for p in model.parameters())
    assert first.name == "test_a_step_of_training_has_a_ledger.<locals>.step"
    assert first.kept_bytes >= 2 * parameters  # Adam's state, made in the first step
    assert second.kept_bytes == 0
    assert second.ledger_bytes["parameters"] == parameters


def test_counters_alone_see_the_process() -> None:
    with track_memory(tensors=False) as tracked:
        kept = mmap.mmap(-1, 64 * MIB)  # straight from the kernel, whatever the heap has left
        kept.write(b"1" * 64 * MIB)
    assert tracked.last.ledger_bytes == {}
    assert tracked.last.peak_bytes > 32 * MIB
    assert tracked.last.rss_peak_bytes > tracked.last.peak_bytes
    kept.close()


def test_a_limit_fails_like_an_assertion() -> None:
    def grow() -> None:
        with track_memory(limit_bytes=MIB):
            torch.zeros(2 * MIB)

    with pytest.raises(AssertionError, match=r"8\.00 MiB at its peak, 1\.00 MiB are allowed"):
        grow()
    with pytest.raises(BudgetExceededError):
        grow()


def test_the_blocks_own_exception_comes_first() -> None:
    def grow() -> None:
        with track_memory(limit_bytes=1):
            torch.zeros(MIB)
            raise ValueError("of the program")

    with pytest.raises(ValueError, match="of the program"):
        grow()


def test_blocks_inside_of_blocks_are_exact_too() -> None:
    outer = track_memory("outer")
    with outer:
        before = torch.zeros(MIB)
        with outer:
            kept = torch.zeros(MIB)
    inner, whole = outer.history
    assert (inner.peak_bytes, inner.kept_bytes) == (4 * MIB, 4 * MIB)
    assert whole.kept_bytes == 8 * MIB == kept.nbytes + before.nbytes


def test_threads_may_be_in_the_same_block_at_the_same_time() -> None:
    both = threading.Barrier(2)

    @track_memory()
    def work(_: int) -> int:
        both.wait(10)
        kept = torch.zeros(MIB)
        both.wait(10)
        return int(kept.nbytes)

    with ThreadPoolExecutor(2) as pool:
        for _ in range(3):
            assert list(pool.map(work, range(2))) == [4 * MIB] * 2
        depths = pool.map(lambda _: len(_get_current_dispatch_mode_stack()), range(4))
        assert list(depths) == [0] * 4
    history = work.memory.history  # type: ignore[attr-defined]
    assert [one.peak_bytes for one in history] == [4 * MIB] * 6


def test_transforms_work_inside() -> None:
    with track_memory() as tracked:
        torch.func.grad(lambda w: (w @ w).sum())(torch.ones(64, 64))
    assert tracked.last.peak_bytes > 0


def test_a_storage_that_is_emptied_is_gone() -> None:
    with track_memory() as tracked:
        parameter = torch.zeros(MIB)
        parameter.untyped_storage().resize_(0)
    assert (tracked.last.peak_bytes, tracked.last.kept_bytes) == (4 * MIB, 0)


def test_it_tells_whom_it_is_told_to_tell() -> None:
    said: list[str] = []
    with track_memory("block", tell=said.append):
        torch.zeros(MIB)
    assert len(said) == 1
    assert said[0].startswith("block: +4.00 MiB at its peak, kept 0 B, in ")


def test_memory_of_calls_is_bounded() -> None:
    @track_memory(tensors=False)
    def call() -> None: ...

    for _ in range(MOST_KEPT + 10):
        call()
    assert len(call.memory.history) == MOST_KEPT  # type: ignore[attr-defined]


def test_generators_and_coroutines_are_refused() -> None:
    def batches() -> Iterator[int]:
        yield 1

    async def serve() -> None: ...

    async def stream() -> AsyncIterator[int]:
        yield 1

    for function in (batches, serve, stream):
        with pytest.raises(InputError, match="inside of it"):
            track_memory()(function)


def test_nothing_tracked_yet_is_said() -> None:
    tracker = track_memory("epoch")
    assert tracker.peak_bytes == 0
    with pytest.raises(LookupError, match="epoch: nothing has been tracked yet"):
        _ = tracker.last


def test_the_record_survives_json() -> None:
    with track_memory() as tracked:
        torch.zeros(8)
    assert from_json(type(tracked.last), to_json(tracked.last)) == tracked.last
