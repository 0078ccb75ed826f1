"""Running several sides in turn: batches inside mirrored, randomised blocks, with equal duty for every side."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import torch

from pyrometer.bench.autocorrelation import Floats
from pyrometer.bench.clock import Clock
from pyrometer.bench.comparison.verdict import Metric
from pyrometer.bench.genuine import doubts
from pyrometer.bench.quality import Caveat, CaveatCode
from pyrometer.bench.sampling import step_failure
from pyrometer.bench.warmup import steady_start
from pyrometer.errors import InputError, PyrometerError, UserProgramError
from pyrometer.garbage import uncollected
from pyrometer.quantity import Seconds
from pyrometer.workload.workload import Session

SHORT_CALL_S = 3e-3
BATCH_S = 1e-3
MIN_CALLS, MAX_CALLS = 5, 20
BUSY = 0.7
ALIKE = 1.15
FEWEST_CALLS = 6
DIFFERENT = 0.005
WARMUP_CALLS = 10
ISOLATED_BATCHES = 10


@dataclass(frozen=True)
class Batch:
    """Times of a few calls in a row of one side.

    Attributes:
        cpu_s: CPU time per call, all threads.
        demand: CPUs that it used or queued for, on average; 0 where nobody looked.
    """

    times_s: tuple[Seconds, ...]
    cpu_s: Seconds
    demand: float = 0.0

    def value(self, metric: Metric) -> Seconds:
        """The batch in one number: mean CPU time per call, or the fastest call."""
        return max(self.cpu_s if metric == "cpu" else min(self.times_s), 1e-9)


@dataclass
class Side:
    """One of the workloads under comparison, open and ready."""

    name: str
    session: Session
    clock: Clock
    first_call_s: Seconds = 0.0
    warmup_s: list[Seconds] = field(default_factory=list)
    warmup_demand: list[float] = field(default_factory=list)
    num_calls: int = 0

    def batch(self, num_calls: int, *, watched: bool = False) -> Batch:
        """Run and time `num_calls` steps; where they are watched, also what they queue for.

        Raises:
            UserProgramError: a step raised; names the side.
        """
        session, clock = self.session, self.clock
        step, mark = session.step, clock.mark
        marks: list[tuple[Any, Any]] = []
        try:
            session.activate()
            prepared = [session.prepare() for _ in range(num_calls)]
            clock.synchronize()
            with uncollected():
                queued_start = clock.all_queued_ns() if watched else 0
                span_start, cpu_start = clock.host_ns(), clock.cpu_ns()
                for arguments in prepared:
                    start = mark()
                    step(arguments)
                    marks.append((start, mark()))
                clock.synchronize()
                cpu_ns = clock.cpu_ns() - cpu_start
                span_ns = clock.host_ns() - span_start
                queued_ns = max(clock.all_queued_ns() - queued_start, 0) if watched else 0
        except PyrometerError:
            raise
        except (Exception, SystemExit) as error:
            failure = step_failure(self.num_calls + len(marks) + 1, error)
            raise UserProgramError(f"{self.name}: {failure}") from error
        self.num_calls += num_calls
        times_s = tuple(clock.between(s, e) for s, e in marks)
        demand = (cpu_ns + queued_ns) / max(span_ns, 1) if watched else 0.0
        return Batch(times_s, cpu_ns * 1e-9 / num_calls, demand)

    def warm(self) -> Batch:
        """One more warm-up call."""
        batch = self.batch(1, watched=True)
        self.warmup_s.append(batch.times_s[0])
        self.warmup_demand.append(batch.demand)
        return batch

    @property
    def typical_s(self) -> Seconds:
        """Fastest warm-up call: on a busy machine most of so few calls are interrupted."""
        return min(self.warmup_s, default=self.first_call_s)

    @property
    def is_warm(self) -> bool:
        """Whether the warm-up reached a steady state."""
        return len(self.warmup_s) >= WARMUP_CALLS and steady_start(np.asarray(self.warmup_s)) is not None

    @property
    def demands(self) -> Floats:
        """CPUs that each warm-up call used or queued for, the first ones left out."""
        return np.asarray(self.warmup_demand[min(2, len(self.warmup_demand) // 2) :], dtype=np.float64)

    @property
    def demand(self) -> float:
        """CPUs that a call uses or queues for, on a crowded machine as on a quiet one; below one the program waits for something else."""
        return float(np.median(self.demands)) if len(self.demands) else 0.0


def warm_up(sides: list[Side], limit_s: Seconds, blocks: Blocks | None = None) -> bool:
    """Warm all sides in turn until each is steady, for at most `limit_s` but at least one call each.

    Args:
        sides: all that are compared.
        limit_s: no further calls are begun after so many seconds.
        blocks: where the calls are kept as blocks, in random order, since most of them are as good as later ones.

    Returns:
        False when a side that had its ten calls was still warming up at the end.
    """
    now_ns = sides[0].clock.host_ns
    deadline_ns = now_ns() + int(limit_s * 1e9)
    while not all(side.is_warm for side in sides):
        if blocks is not None:
            blocks.run(Side.warm)
        else:
            for side in sides:
                side.warm()
        if now_ns() >= deadline_ns:
            return all(side.is_warm for side in sides) or len(sides[0].warmup_s) < WARMUP_CALLS
    return True


def require_genuine(sides: list[Side]) -> list[Caveat]:
    """Refuse to compare what would fool a comparison; after the warm-up.

    Returns:
        What may fool it: work on other threads may be that of the next step, where each has inputs of its own.

    Raises:
        InputError: the time of a side's step is not that of its work.
        UserProgramError: a step raised.
    """
    doubtful: list[Caveat] = []
    for side in sides:
        try:
            found, num_steps = doubts(side.session, side.clock, side.typical_s, side.first_call_s)
        except PyrometerError:
            raise
        except (Exception, SystemExit) as error:
            failure = step_failure(side.num_calls + 1, error)
            raise UserProgramError(f"{side.name}: {failure}") from error
        side.num_calls += num_steps
        for doubt in found:
            if doubt.code == CaveatCode.WORK_PUT_OFF and side.session.may_load_ahead:
                doubtful.append(msgspec.structs.replace(doubt, message=f"{side.name}: {doubt.message}"))
                continue
            raise InputError(f"{side.name}: {doubt.message}; {doubt.advice.title}")
    return doubtful


def choose_metric(sides: list[Side]) -> tuple[Metric, int]:
    """What to compare and how many calls make a batch; from the warm-up only, before any block.

    Device events on a device. On the CPU the fastest of 5 to 20 calls below 3 ms; above, CPU time per call, unless a
    side waits (loader, sleep, disk) or the sides ask for different numbers of CPUs (threads): then wall time again,
    because there CPU time says nothing about waiting. Queueing for a CPU is no waiting: what a call asks for is the time
    its threads ran or queued, over its length. Threads that wait for each other on a crowded machine spread that from
    call to call: only what the spread does not explain is a difference.
    """
    typical = max(side.typical_s for side in sides)
    calls = (
        int(np.clip(round(BATCH_S / max(typical, 1e-9)), MIN_CALLS, MAX_CALLS))
        if typical < SHORT_CALL_S
        else 1
    )
    if sides[0].clock.name != "wall":
        return "device", calls
    if typical < SHORT_CALL_S:
        return "wall_min", calls
    if min(side.demand for side in sides) >= BUSY and all(_alike(sides[0], side) for side in sides[1:]):
        return "cpu", 1
    return "wall_min", 3 if typical < 0.1 else 1


def _alike(baseline: Side, candidate: Side) -> bool:
    """Whether two sides ask for as many CPUs, or differ by no more than their own calls do (Mann-Whitney)."""
    for typical in (
        np.median,
        np.max,
    ):  # of the calls that were disturbed least, where most wait for each other
        low, high = sorted(float(typical(side.demands)) for side in (baseline, candidate))
        if high <= ALIKE * low:
            return True
    calls = [baseline.demands, candidate.demands]
    if min(map(len, calls)) < FEWEST_CALLS:
        return False
    from scipy import stats  # slow to import

    return float(stats.mannwhitneyu(*calls).pvalue) > DIFFERENT


@dataclass
class Blocks:
    """The blocks that were run so far.

    A mirrored block runs every side once in a random order and then once more in the reverse order (ABBA or BAAB for two),
    so that a drift of the machine cancels inside the block and no side is favoured by its place. One that is not runs
    every side once: of long steps twice as many such blocks tell more, because neighbours are most alike.

    Attributes:
        rows: of every block the batches of every side.
        rows_s: how long every block took.
        orders: in which the sides of every block ran first.
    """

    sides: list[Side]
    metric: Metric
    calls: int
    seed: int
    mirrored: bool = True
    rows: list[list[tuple[Batch, ...]]] = field(default_factory=list)
    rows_s: list[Seconds] = field(default_factory=list)
    orders: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311 - a coin for the order, not a secret

    def run(self, batch: Callable[[Side], Batch] | None = None) -> None:
        """Run one more block; of the batches that are given, or of as many calls as are set."""
        order = list(range(len(self.sides)))
        self._random.shuffle(order)
        block_seed = self._random.getrandbits(31)
        batches: list[list[Batch]] = [[] for _ in self.sides]
        start_ns = self.sides[0].clock.host_ns()
        for index in [*order, *reversed(order)] if self.mirrored else order:
            # The same random inputs for every side of the block, so that drawing them adds no noise.
            seed_all(block_seed)
            side = self.sides[index]
            batches[index].append(batch(side) if batch else side.batch(self.calls))
        self.rows_s.append((self.sides[0].clock.host_ns() - start_ns) * 1e-9)
        self.rows.append([tuple(own) for own in batches])
        self.orders.append(order)

    def steady(self) -> Blocks:
        """These without the first ones: two, and those before the first that is no slower than half of them.

        What a block took is told of all its sides together, which says nothing about which of them is ahead.
        """
        taken = np.array([sum(batch.cpu_s for own in row for batch in own) for row in self.rows])
        head = max(2, int(np.argmax(taken <= np.median(taken)))) if len(taken) else 0
        for series in (self.rows, self.rows_s, self.orders):
            del series[:head]
        return self

    def log_ratios(self, candidate: int, metric: Metric | None = None) -> Floats:
        """ln(candidate/baseline) of every block; the baseline is side 0."""
        chosen = metric or self.metric
        values = [[self._log(own, chosen) for own in (row[0], row[candidate])] for row in self.rows]
        return np.array([b - a for a, b in values], dtype=np.float64)

    @staticmethod
    def _log(own: tuple[Batch, ...], metric: Metric) -> float:
        return float(np.mean([np.log(batch.value(metric)) for batch in own]))

    def median_s(self, side: int) -> Seconds:
        """Median over blocks of what a step of a side takes, by its clock: also where CPU time of all threads is compared."""
        return float(np.median([min(batch.times_s) for row in self.rows for batch in row[side]]))

    def times(self, side: int) -> list[Floats]:
        """Every timed call of a side, block by block."""
        return [np.array([t for batch in row[side] for t in batch.times_s]) for row in self.rows]

    def isolated(self, candidate: int) -> float:
        """ln(candidate/baseline) with each side running alone for a while, twice in turn.

        Kernels of one side can slow or speed the other's (shared power limit, caches, collectives); in blocks that
        looks like a difference between the sides.
        """
        values: dict[int, list[float]] = {0: [], candidate: []}
        for index in (0, candidate, candidate, 0):
            batches = [self.sides[index].batch(self.calls) for _ in range(ISOLATED_BATCHES)]
            values[index].append(float(np.median([np.log(batch.value(self.metric)) for batch in batches])))
        return float(np.mean(values[candidate]) - np.mean(values[0]))

    def slot_effect(self) -> float:
        """Median ln(first run/second run) inside a block: what the place in the block costs."""
        if self.mirrored:
            return float(
                np.median(
                    [
                        self._log(own[:1], self.metric) - self._log(own[1:], self.metric)
                        for row in self.rows
                        for own in row
                    ]
                )
            )
        usual = [
            np.median([self._log(row[side], self.metric) for row in self.rows])
            for side in range(len(self.sides))
        ]
        above = [
            [self._log(row[side], self.metric) - usual[side] for side in order]
            for row, order in zip(self.rows, self.orders, strict=True)
        ]
        return float(np.median([first - last for first, *_, last in above]))


def seed_all(seed: int) -> None:
    """Seed Python's, NumPy's and torch's generators; the sessions restore them at the end."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - the user's code may draw from the legacy generator
    torch.manual_seed(seed)
