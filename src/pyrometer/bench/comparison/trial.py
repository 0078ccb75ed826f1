"""Running a comparison: open the sides, warm them, run blocks, look, stop as soon as everything is decided."""

from __future__ import annotations

import contextlib
import gc
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyrometer.bench.clock import Clock, clock_for
from pyrometer.bench.comparison.decision import Decision, DecisionRule, decide
from pyrometer.bench.comparison.interleaving import (
    MIN_CALLS,
    Blocks,
    Side,
    choose_metric,
    require_genuine,
    warm_up,
)
from pyrometer.bench.dynamo import compile_seconds
from pyrometer.bench.quality import Caveat
from pyrometer.bench.stage import Progress
from pyrometer.errors import InputError
from pyrometer.quantity import Seconds
from pyrometer.workload.workload import Workload

WARMUP_SHARE = 0.2


def open_sides(
    stack: contextlib.ExitStack, works: Sequence[Workload], clock: Clock | None = None
) -> list[Side]:
    """Open every workload until the stack is closed.

    Raises:
        InputError: a workload cannot be prepared, or they are on different devices.
    """
    sides: list[Side] = []
    for work, name in zip(works, _names(works), strict=True):
        session = stack.enter_context(work.open())
        sides.append(Side(name, session, clock or clock_for(session.device)))
    devices = {side.session.device.type for side in sides}
    if len(devices) > 1:
        raise InputError(f"compare: the sides are on {' and '.join(sorted(devices))}; put them on one device")
    return sides


def _names(works: Sequence[Workload]) -> list[str]:
    """Names that tell the sides apart: the workload's, its variant's, or a letter."""
    names = [
        work.name if work.config.label == "as written" else f"{work.name} ({work.config.label})"
        for work in works
    ]
    if len(set(names)) == len(names):
        return names
    return [f"{chr(ord('A') + i % 26)}: {name}" for i, name in enumerate(names)]


@dataclass
class Trial:
    """One comparison: its sides, its rule, and the blocks and decisions so far.

    Attributes:
        sides: the baseline first, then the candidates.
        decisions: by the candidate's place in `sides`; empty when a single step is longer than the budget.
        isolated: by the same key, ln(candidate/baseline) of each side run alone; on devices only.
        gives_up: estimate of ln(candidate/baseline) above which, at a look, the rest of the budget is not spent on it.
        strict: refuse sides whose time is not that of their work; what may be so is in `doubts`.
        blocks_s: time that the blocks took, those of the warm-up that are kept included.
        elapsed_s: time that everything took, first calls included.
    """

    sides: list[Side]
    rule: DecisionRule
    budget_s: Seconds
    seed: int
    progress: Progress | None
    interrupted: bool = False
    warm: bool = True
    gives_up: float = math.inf
    strict: bool = False
    doubts: list[Caveat] = field(default_factory=list)
    blocks_s: Seconds = 0.0
    elapsed_s: Seconds = 0.0
    decisions: dict[int, Decision] = field(default_factory=dict)
    isolated: dict[int, float] = field(default_factory=dict)

    def run(self) -> None:
        """Warm up, choose the metric, run blocks until every candidate is decided or the budget is spent.

        Raises:
            InputError: the time of a side's step is not that of its work.
            KeyboardInterrupt: before the first block was complete, so that there is nothing to keep.
        """
        opened_s = self._now_s()
        gc.collect()
        self._first_calls()
        if self._worth_trying():
            self._warm_and_run()
        self.elapsed_s = self._now_s() - opened_s

    def _first_calls(self) -> None:
        compiled_before = compile_seconds()
        for side in self.sides:
            side.first_call_s = side.batch(1).times_s[0]
        self._started_s = self._now_s()
        self.blocks = Blocks(self.sides, "wall_min", 1, self.seed)
        self._compiled = compile_seconds() != compiled_before

    def _worth_trying(self) -> bool:
        """Whether a step fits into the budget; a first call that compiled says nothing about the next."""
        return self._compiled or max(side.first_call_s for side in self.sides) <= self.budget_s

    def _warm_and_run(self) -> None:
        warming = Blocks(self.sides, "cpu", 1, self.seed, mirrored=False)
        self.warm = warm_up(self.sides, self.budget_s * WARMUP_SHARE, warming)
        if self.strict:
            self.doubts = require_genuine(self.sides)
        metric, calls = choose_metric(self.sides)
        if metric == "cpu" and self.warm:
            self.blocks = warming.steady()
        else:
            mirrored = metric == "device" or calls >= MIN_CALLS
            self.blocks = Blocks(self.sides, metric, calls, self.seed, mirrored=mirrored)
        if not self.blocks.mirrored:
            self.rule = self.rule.with_longer_looks()
        self._num_looks = 0
        try:
            self._run_blocks()
        except KeyboardInterrupt:
            if not self.blocks.rows:
                raise
            self.interrupted = True
        self.blocks_s = sum(self.blocks.rows_s)
        # When the budget ends has nothing to do with which side is ahead; when somebody interrupts it may have.
        self._look(1 if self.interrupted else self.rule.looks_left(self._num_looks))
        if metric == "device" and not self.interrupted:
            try:
                self.isolated = {i: self.blocks.isolated(i) for i in range(1, len(self.sides))}
            except KeyboardInterrupt:
                self.interrupted = True

    def _now_s(self) -> Seconds:
        return self.sides[0].clock.host_ns() * 1e-9

    @property
    def _spent_s(self) -> Seconds:
        return self._now_s() - self._started_s

    def _run_blocks(self) -> None:
        for look in self.rule.looks:
            while len(self.blocks.rows) < look:
                if self._block_would_overrun():
                    return
                self.blocks.run()
                if self.progress is not None:
                    self.progress(min(self._spent_s / self.budget_s, 1.0), f"block {len(self.blocks.rows)}")
            self._look()
            self._num_looks += 1
            if all(each.outcome or each.estimate > self.gives_up for each in self.decisions.values()):
                return

    def _block_would_overrun(self) -> bool:
        """Whether the next block would end after the budget; the first one is always run."""
        rows_s = self.blocks.rows_s
        return bool(rows_s) and self._spent_s + sum(rows_s) / len(rows_s) > self.budget_s

    def _look(self, num_looks: int = 1) -> None:
        for candidate in range(1, len(self.sides)):
            earlier = self.decisions.get(candidate)
            if earlier is None or earlier.outcome is None:
                self.decisions[candidate] = decide(self.blocks.log_ratios(candidate), self.rule, num_looks)
