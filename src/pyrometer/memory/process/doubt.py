"""The process grows although its tensors do not: why?

A list of questions, each answered from readings, from what the caller knows, or by elimination. Only where asked is
something done: giving free memory back, or running the program again in a fresh process.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyrometer.memory.process.growth import Answer, Branch, Cause, GrowthExplanation, Hints, Trim
from pyrometer.memory.process.heap import trim_heap
from pyrometer.memory.process.read import read_process
from pyrometer.memory.process.record import Footprint, ProcessMemory
from pyrometer.memory.process.trial import ONEDNN_CACHES_OFF, RETENTION_OFF, command_with
from pyrometer.quantity import Bytes, counted, format_bytes

MOST_SHARE = 0.5
SMALLEST_BYTES = 2**20
SMALLEST_SHARE = 0.01
FEW_SHAPES = 3
BYTES_PER_BLOCK = 64


@dataclass(frozen=True)
class _Case:
    before: ProcessMemory
    after: ProcessMemory
    hints: Hints

    @property
    def growth(self) -> Bytes:
        return self.after.own.rss_bytes - self.before.own.rss_bytes

    @property
    def smallest(self) -> Bytes:
        return max(SMALLEST_BYTES, int(SMALLEST_SHARE * self.before.own.rss_bytes))

    @property
    def command(self) -> Sequence[str]:
        return self.hints.command or ("python", "your_script.py")

    def most(self, part: Bytes) -> bool:
        """Whether a part is at least half of the growth."""
        return part >= MOST_SHARE * self.growth


def explain_growth(
    before: ProcessMemory, after: ProcessMemory, *, num_steps: int | None = None, hints: Hints | None = None
) -> GrowthExplanation:
    """Say why the process grew between two readings.

    Growth of less than 1 MiB or 1 % is taken for none. A cause is named when it accounts for at least half of the growth. A
    native leak is what remains when everything else is excluded; while a question is open the cause is `undecided`, and
    the first open branch says what would answer it.

    Args:
        before: taken after the warm-up.
        after: taken at the same point of a later step.
        num_steps: steps between the two.
        hints: what is known besides.
    """
    case = _Case(before, after, hints or Hints())
    branches = [ask(case) for ask in _QUESTIONS]
    branches.append(_native(case, branches))
    cause = _decided(case, branches)
    return GrowthExplanation(
        cause=cause,
        summary=_summary(case, cause, branches),
        growth_bytes=case.growth,
        bytes_per_step=case.growth / num_steps if num_steps else None,
        branches=branches,
        before=before,
        after=after,
    )


def trim_and_read() -> Trim | None:
    """Give the C library's free memory back and say what it did; `None` where it cannot be done."""
    before = read_process().own.rss_bytes
    return Trim(before_bytes=before, after_bytes=read_process().own.rss_bytes) if trim_heap() else None


def _decided(case: _Case, branches: list[Branch]) -> Cause:
    found = next((branch.cause for branch in branches if branch.answer == "yes"), None)
    if found is not None:
        return found
    return "no growth" if case.growth < case.smallest else "undecided"


def _summary(case: _Case, cause: Cause, branches: list[Branch]) -> str:
    grew = f"the process grew by {format_bytes(case.growth)}"
    if cause == "no growth":
        return "neither the process nor its workers or devices grew by more than 1 MiB or 1 %"
    if cause == "undecided":
        still_open = [branch.cause for branch in branches if branch.answer == "unknown"]
        return f"{grew}; not excluded: {', '.join(still_open)}"
    decisive = next(branch for branch in branches if branch.answer == "yes")
    return f"{grew}; {cause}: {decisive.evidence}"


def _branch(cause: Cause, answer: Answer, evidence: str, next_step: str | None = None) -> Branch:
    return Branch(
        cause=cause, answer=answer, evidence=evidence, next_step=None if answer == "no" else next_step
    )


def _tensors(case: _Case) -> Branch:
    found = case.hints.tensor_growth_bytes
    if found is None:
        return _branch(
            "tensors", "unknown", "live tensors were not counted", "watch live tensors over some steps"
        )
    grew = case.growth >= case.smallest and case.most(found)
    return _branch(
        "tensors",
        "yes" if grew else "no",
        f"live tensors grew by {format_bytes(found)}",
        "find out which lines keep them",
    )


def _devices(case: _Case) -> Branch:
    earlier = {device.device: device for device in case.before.devices}
    changes = [
        (after.outside_bytes - earlier[after.device].outside_bytes, after.device)
        for after in case.after.devices
        if after.device in earlier
    ]
    if not changes:
        return _branch("device memory outside of torch", "no", "no device was in use")
    most, device = max(changes)
    return _branch(
        "device memory outside of torch",
        "yes" if most >= case.smallest else "no",
        f"on {device}, memory that torch's allocator does not hold changed by {format_bytes(most)}",
        "look for other processes on the device (nvidia-smi), NCCL communicators, cuBLAS and cuDNN handles, CUDA graphs",
    )


def _workers(case: _Case) -> Branch:
    earlier = {worker.pid: worker for worker in case.before.workers}
    pairs = [(earlier[worker.pid], worker) for worker in case.after.workers if worker.pid in earlier]
    if not pairs:
        return _branch("copy-on-write in workers", "no", "no worker process lived at both readings")
    written = sum(_grown(first, last, "private_dirty_bytes") for first, last in pairs)
    unshared = -sum(_grown(first, last, "shared_bytes") for first, last in pairs)
    copied = written >= SMALLEST_BYTES and unshared >= MOST_SHARE * written
    return _branch(
        "copy-on-write in workers",
        "yes" if copied else "no",
        f"{counted(len(pairs), 'worker')} wrote to {format_bytes(written)} more of private pages, and {format_bytes(unshared)} "
        "are no longer shared",
        "counting references writes to the pages of Python objects: keep what the workers read in few large buffers, such as a "
        "numpy array of bytes, Arrow or a tensor with offsets, instead of lists and dictionaries",
    )


def _grown(first: Footprint, last: Footprint, field: str) -> Bytes:
    before, after = getattr(first, field), getattr(last, field)
    return 0 if before is None or after is None else after - before


def _retention(case: _Case) -> Branch:
    remedy = (
        "nothing leaks; to give memory back, "
        + command_with(case.command, RETENTION_OFF)
        + ", or another allocator (jemalloc)"
    )
    trim = case.hints.trim
    if trim is not None:
        freed = trim.before_bytes - trim.after_bytes
        answer: Answer = "yes" if case.growth >= case.smallest and case.most(freed) else "no"
        return _branch("retention", answer, f"malloc_trim gave back {format_bytes(freed)}", remedy)
    if case.before.heap is None or case.after.heap is None:
        return _branch(
            "retention",
            "unknown",
            "the C library does not tell what it keeps",
            "give free memory back and read again",
        )
    kept = case.after.heap.free_bytes - case.before.heap.free_bytes
    return _branch(
        "retention",
        "unknown" if case.growth >= case.smallest and case.most(kept) else "no",
        f"the C library keeps {format_bytes(kept)} more of freed memory",
        "give free memory back (malloc_trim) and read again: what falls was kept, not leaked",
    )


def _primitives(case: _Case) -> Branch:
    shapes, trial = case.hints.num_shapes, case.hints.trial
    off = command_with(case.command, ONEDNN_CACHES_OFF)
    if trial is not None:
        saved = trial.peak_bytes - trial.peak_with_bytes
        answer: Answer = "yes" if saved >= case.smallest and case.most(saved) else "no"
        return _branch(
            "primitive cache",
            answer,
            f"without oneDNN's caches the peak is {format_bytes(saved)} lower",
            f"pad inputs to few shapes, or keep the caches small: {off}",
        )
    if shapes is not None and shapes <= FEW_SHAPES:
        return _branch("primitive cache", "no", f"inputs had {counted(shapes, 'shape')}")
    if case.growth < case.smallest:
        return _branch("primitive cache", "no", "the process did not grow")
    seen = "shapes of inputs were not counted" if shapes is None else f"inputs had {counted(shapes, 'shape')}"
    return _branch(
        "primitive cache", "unknown", seen, f"run it in a fresh process and compare the growth: {off}"
    )


def _compilations(case: _Case) -> Branch:
    number = case.hints.num_compilations
    if number is None and case.growth >= case.smallest:
        return _branch(
            "compile cache", "unknown", "compilations were not counted", "count them: TORCH_LOGS=recompiles"
        )
    return _branch(
        "compile cache",
        "yes" if number and case.growth >= case.smallest else "no",
        f"{counted(number or 0, 'graph')} compiled between the readings",
        "make compilations end: mark sizes as dynamic or pad to few shapes",
    )


def _python_objects(case: _Case) -> Branch:
    more = case.after.python_blocks - case.before.python_blocks
    least = more * BYTES_PER_BLOCK
    return _branch(
        "Python objects",
        "yes" if case.growth >= case.smallest and case.most(least) else "no",
        f"{more:+,} blocks of Python objects, some {format_bytes(least)}",
        "compare two tracemalloc snapshots: tracemalloc.take_snapshot().compare_to(earlier, 'lineno')",
    )


def _native(case: _Case, others: list[Branch]) -> Branch:
    """What remains when nothing else is left."""
    before, after = case.before.heap, case.after.heap
    if before is None or after is None:
        evidence = "what the C library has handed out was not read"
    else:
        evidence = f"the C library has handed out {format_bytes(after.used_bytes - before.used_bytes)} more"
    answers = {branch.answer for branch in others}
    answer: Answer = "yes" if answers == {"no"} else "unknown"
    if case.growth < case.smallest or "yes" in answers:
        answer = "no"
    program = shlex.join(case.command[1:])
    return _branch(
        "native leak",
        answer,
        evidence,
        f"python -m memray run --native -o leak.bin {program}, then python -m memray flamegraph --leaks leak.bin",
    )


_QUESTIONS: tuple[Callable[[_Case], Branch], ...] = (
    _tensors,
    _devices,
    _workers,
    _retention,
    _primitives,
    _compilations,
    _python_objects,
)
