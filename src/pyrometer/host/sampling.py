"""Sampling the steps of a workload: blocks with and without the sampler in turn, then some that are watched."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

import msgspec
import torch

from pyrometer.bench.clock import queued_ns
from pyrometer.host.samples import HostSamples
from pyrometer.quantity import Seconds, format_seconds
from pyrometer.workload.failure import described
from pyrometer.workload.script.startup._pyrometer_inside.host_record import (
    COUNT_NOTE,
    host_record,
)
from pyrometer.workload.script.startup._pyrometer_inside.host_sampler import (
    INTERVAL_S,
    HostSampler,
    fitting_interval_s,
    tick_cost_ns,
)
from pyrometer.workload.script.startup._pyrometer_inside.host_watch import HostWatch
from pyrometer.workload.workload import Session, Workload

BLOCK_S = 0.02
"""Steps shorter than this run in blocks, so that switching the sampler costs nothing beside them."""

SAMPLED_BLOCK_S = 0.06
"""Of sampled steps; fewer are needed beside them to tell what sampling costs."""

MOST_OVERHEAD = 0.035
FEWEST_BLOCKS = 3
"""Of either kind, by which it is judged whether looks are too dear."""

FASTEST_GROWTH = 2.0

LONGEST_GROWTH = 4
"""Times that the interval may become longer while steps run."""

MOST_WATCHED = 8
WATCHED_S = 0.15
"""More than one step is watched where they are short, so that chance in one of them counts for less."""

WATCHED_COST = 8
"""Times that a step may take while it is watched."""

MOST_STEPS = 40_000


class _Block(NamedTuple):
    """What a step of a block took, in ns: of the processor, and in all but without queues for the processor."""

    cpu_ns: float
    free_ns: float


class _Timed:
    """Steps of a session, one at a time; `run` is the code at which stacks end."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._on_device = session.device.type == "cuda"

    def run(self, prepared: Any) -> int:
        """One step, until the device has done it, in ns."""
        start = time.perf_counter_ns()
        self._session.step(prepared)
        if self._on_device:
            torch.cuda.synchronize(self._session.device)
        return time.perf_counter_ns() - start

    def prepare(self) -> Any:
        """What the next step consumes."""
        return self._session.prepare()

    def bare(self) -> int:
        """A step with its preparation."""
        return self.run(self.prepare())

    def sampled(self, sampler: HostSampler) -> int:
        """A step with its preparation; only the step is sampled."""
        prepared = self.prepare()
        sampler.begin()
        try:
            return self.run(prepared)
        finally:
            sampler.end()


def sample_host(work: Workload, *, budget_s: Seconds, interval_s: Seconds = INTERVAL_S) -> HostSamples:
    """Run steps of a workload and look where the host is; what a step raises ends that, and is told in a note.

    Blocks of steps with and without the sampler alternate, so that what it costs can be told. At the end a step, or some
    short ones, are watched instruction by instruction, unless that takes too long or the thread is traced already.

    Args:
        work: what to run.
        budget_s: for all steps together; one is run whatever it takes.
        interval_s: between looks; longer where stacks are deep.
    """
    with work.open() as session:
        session.activate()
        return _Run(_Timed(session), budget_s, interval_s).samples()


class _Run:
    def __init__(self, steps: _Timed, budget_s: Seconds, interval_s: Seconds) -> None:
        self._steps = steps
        self._ends = time.perf_counter() + budget_s
        self._budget_s = budget_s
        self._interval_s = interval_s
        self._sampled: list[int] = []
        self._bare: list[int] = []
        self._sampled_blocks: list[_Block] = []
        self._bare_blocks: list[_Block] = []
        self._notes: list[str] = []
        self._sampler: HostSampler | None = None
        self._longest_ns = 0
        self._judged = 0

    def samples(self) -> HostSamples:
        watch = None
        try:
            first_ns = self._steps.bare()
            gc.collect()  # what is due by now is no step's: a full collection takes a tenth of a second beside torch
            if 4e-9 * first_ns > self._budget_s:
                self._sample_once(first_ns)
            else:
                self._sample()  # without the first, in which things may have been built
            watch = self._watch()
        except Exception as error:  # noqa: BLE001 - the user's: what was seen until then is kept
            self._notes.append(f"a step raised {described(error)}; steps after it were not sampled")
        sampler = self._sampler or HostSampler(self._interval_s)
        plain = host_record(sampler, watch, self._sampled, self._bare, self._notes)
        return msgspec.convert(plain | {"overheads": self._overheads()}, HostSamples)

    def _overheads(self) -> list[float]:
        """By how much sampling lengthened steps, from each block to the sampled one after it.

        In time of the processor, which others that use it too leave as it is: a look takes the processor while it lasts.
        """
        pairs = zip(self._bare_blocks, self._sampled_blocks, strict=False)
        return [
            (sampled.cpu_ns - bare.cpu_ns) / max(bare.free_ns, bare.cpu_ns, 1.0) for bare, sampled in pairs
        ]

    def _sample(self) -> None:
        self._sampler = HostSampler(self._fitting_interval(), _Timed.run.__code__)
        self._longest_ns = LONGEST_GROWTH * self._sampler.interval_ns
        self._block(self._bare, self._bare_blocks, self._steps.bare)
        while True:
            self._sampled_block(self._sampler)
            if self._is_over():
                break
            self._relent(self._sampler)
            self._block(self._bare, self._bare_blocks, self._steps.bare)
            if self._is_over():
                break

    def _sample_once(self, bare_ns: int) -> None:
        """One long step."""
        self._bare.append(bare_ns)
        self._sampler = HostSampler(fitting_interval_s(tick_cost_ns()), _Timed.run.__code__)
        self._sampled_block(self._sampler)

    def _relent(self, sampler: HostSampler) -> None:
        """Look less often where that lengthens steps by more than it may."""
        since = self._overheads()[self._judged :]
        if len(since) < FEWEST_BLOCKS or median(since) <= MOST_OVERHEAD:
            return
        growth = min(FASTEST_GROWTH, median(since) / MOST_OVERHEAD)
        sampler.interval_ns = min(int(sampler.interval_ns * growth), self._longest_ns)
        self._judged += len(since)

    def _sampled_block(self, sampler: HostSampler) -> None:
        sampler.open()
        try:
            self._block(
                self._sampled, self._sampled_blocks, lambda: self._steps.sampled(sampler), SAMPLED_BLOCK_S
            )
        finally:
            sampler.close()

    def _block(
        self, into: list[int], blocks: list[_Block], step: Callable[[], int], block_s: Seconds = BLOCK_S
    ) -> None:
        before = len(into)
        queued, cpu, start = queued_ns(), time.process_time_ns(), time.perf_counter_ns()
        ends = start + int(block_s * 1e9)
        while True:
            into.append(step())
            now = time.perf_counter_ns()
            if now >= ends:
                break
        steps, cpu = len(into) - before, time.process_time_ns() - cpu
        blocks.append(_Block(cpu / steps, (now - start - (queued_ns() - queued)) / steps))

    def _is_over(self) -> bool:
        """Whether one more block, and the step that is watched, would take longer than is allowed."""
        step_s = max(self._sampled[-1], self._bare[-1]) * 1e-9
        left_s = self._ends - time.perf_counter()
        return len(self._sampled) >= MOST_STEPS or left_s < max(step_s, BLOCK_S) + min(
            WATCHED_COST * step_s, self._budget_s / 3
        )

    def _fitting_interval(self) -> Seconds:
        """So long that looks at stacks this deep stay within their share: judged by a first, sampled step."""
        trial = HostSampler(self._interval_s, _Timed.run.__code__)
        trial.open()
        try:
            self._steps.sampled(trial)
        finally:
            trial.close()
        return fitting_interval_s(
            tick_cost_ns(), trial.spent_ns / max(trial.looks, 1), shortest_s=self._interval_s
        )

    def _watch(self) -> HostWatch | None:
        step_s = min(self._bare) * 1e-9
        if sys.gettrace() is not None:
            self._notes.append(
                "how often lines run was not counted: a debugger or coverage traces this thread"
            )
            return None
        if step_s > self._budget_s / 2:
            self._notes.append(
                f"how often lines run was not counted: one more step of {format_seconds(step_s)} is more than the budget allows"
            )
            return None
        watch = HostWatch()
        ends = time.perf_counter() + WATCHED_S
        while (
            watch.complete and watch.steps < MOST_WATCHED and (not watch.steps or time.perf_counter() < ends)
        ):
            prepared = self._steps.prepare()
            watch.begin()
            try:
                self._steps.run(prepared)
            finally:
                watch.end()
        watch.settle()
        if not watch.complete:
            self._notes.append(COUNT_NOTE)
        return watch
