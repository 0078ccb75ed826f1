"""One pair: a fresh process of each side, which run every benchmark in turns.

All benchmarks share the start of the processes. A second process of the base, where it is asked for, runs in the same
blocks: what differs between the two is chance.
"""

from __future__ import annotations

import contextlib
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import numpy as np

from pyrometer.bench.comparison.interleaving import Batch, Blocks, choose_metric, warm_up
from pyrometer.bench.comparison.pairing import trimmed_mean
from pyrometer.bench.comparison.replicate import NUM_BLOCKS, NUM_BLOCKS_SHORT, SHORT_STEP_S
from pyrometer.bench.comparison.verdict import Metric
from pyrometer.bench.worker import Worker, WorkerSide
from pyrometer.errors import PyrometerError
from pyrometer.guard import protocol
from pyrometer.guard.environments import Checkout
from pyrometer.guard.gate import Missed
from pyrometer.guard.serving import draw_core
from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc

WARMUP_S = 2.0
LEAST_BLOCKS_S, MOST_BLOCKS_S = 1.0, 4.0
"""Blocks are cheap beside the start of the processes: some more of short steps find a quiet moment of the machine."""

LEAST_OF_ALL_S, MOST_OF_ALL_S = 2.0, 12.0
"""Of a pair's blocks together, shared by the benchmarks that are still open."""

QUIET = 0.1
FEWEST_BLOCKS = 4
"""Of steps so long that more of them would take minutes; the interval over pairs tells how little they say."""

BLOCKS_OF_A_CORE = 4
ASK_S = 900.0
FEWEST_CALLS = {0.95: 60, 0.99: 300}
"""Calls below which a tail is not told."""

Role: TypeAlias = Literal["base", "head", "again"]
Method: TypeAlias = tuple[Metric, int]


class Figures(Record, frozen=True, kw_only=True):
    """One side of a benchmark in one pair."""

    opened: protocol.Opened
    finished: protocol.Finished
    median_s: Annotated[
        Seconds, doc("of a steady step: median over blocks; of wall time that of quiet moments")
    ]
    p95_s: Seconds | None = None
    p99_s: Seconds | None = None
    jitter: Annotated[float | None, doc("interquartile range over median of single calls")] = None


class Sample(Record, frozen=True, kw_only=True):
    """A benchmark in one pair."""

    metric: Metric
    calls: int
    num_blocks: int
    log_ratio: Annotated[float, doc("ln(head/base) of the steady step")]
    base: Figures
    head: Figures
    again: Annotated[float | None, doc("ln(base/base), where the base ran twice")] = None


class Pair(Record, frozen=True, kw_only=True):
    """What a pair of processes has measured."""

    samples: dict[str, Sample] = {}
    missed: list[Missed] = []


class SideFailedError(Exception):
    """A benchmark failed on one side; the cause says how."""

    def __init__(self, role: Role, error: PyrometerError) -> None:
        super().__init__(str(error))
        self.role = role


class _RoleSide(WorkerSide):
    """A side that says which one it is when it fails."""

    def __init__(self, role: Role, child: Worker, opened: protocol.Opened, name: str) -> None:
        super().__init__(child, opened.clock, name, ASK_S)
        self.role = role
        self.first_call_s = opened.first_call_s

    def batch(self, num_calls: int, *, watched: bool = False) -> Batch:
        """A batch of the worker."""
        with _failing(self.role):
            return super().batch(num_calls, watched=watched)


@contextlib.contextmanager
def _failing(role: Role) -> Iterator[None]:
    try:
        yield
    except PyrometerError as error:
        raise SideFailedError(role, error) from error


@dataclass
class PairRun:
    """Runs one pair.

    Attributes:
        checkouts: base and head.
        collect: what each side is asked for first.
        names: the benchmarks, which both sides have.
        twice: those in which the base runs twice.
        methods: what is compared of each, and how many calls make a batch; the first pair chooses them.
        folder: for logs and caches of this pair.
        seed: of all orders.
        tell: told the share done.
    """

    checkouts: Mapping[str, Checkout]
    collect: Mapping[str, protocol.Collect]
    names: Sequence[str]
    twice: frozenset[str]
    methods: dict[str, Method]
    folder: Path
    seed: int
    tell: Callable[[float, str], None]
    _workers: dict[Role, Worker] = field(default_factory=dict)

    def run(self) -> Pair:
        """Start the processes, run every benchmark, end them."""
        self._coin = random.Random(self.seed)  # noqa: S311 - a coin for the order, not a secret
        samples: dict[str, Sample] = {}
        missed: list[Missed] = []
        with contextlib.ExitStack() as stack:
            missed += self._start(stack)
            if not missed:
                names = self._shuffled(self.names)
                for number, name in enumerate(names):
                    self.tell(number / len(names), name)
                    try:
                        samples[name] = self._benchmark(name)
                    except SideFailedError as failed:
                        missed.append(
                            Missed(benchmark=name, side=_side(failed.role), reason=str(failed), failed=True)
                        )
                        if any(not worker.alive for worker in self._workers.values()):
                            break  # the next pair goes on without it
        return Pair(samples=samples, missed=missed)

    def _shuffled(self, items: Sequence[str]) -> list[str]:
        return self._coin.sample(list(items), len(items))

    def _start(self, stack: contextlib.ExitStack) -> list[Missed]:
        """All processes at once, which then wait for their turn."""
        roles = _roles(twice=bool(self.twice))
        self._coin.shuffle(roles)
        for number, role in enumerate(roles):
            # Names of equal length: what the environment holds moves the stack.
            worker = self.checkouts[_side(role)].start(
                self.folder / f"{role}.log", self.folder / f"cache-{number}", self.seed
            )
            stack.callback(worker.close)
            self._workers[role] = worker
        missed = []
        for role, worker in self._workers.items():
            side = _side(role)
            try:
                worker.ask(self.collect[side], protocol.Collected, timeout_s=ASK_S)
            except PyrometerError as error:
                missed += [
                    Missed(benchmark=name, side=side, reason=str(error), failed=True) for name in self.names
                ]
                break
        return missed

    def _benchmark(self, name: str) -> Sample:
        roles = _roles(twice=name in self.twice)
        opened: dict[Role, protocol.Opened] = {}
        for role in self._coin.sample(roles, len(roles)):
            with _failing(role):
                opened[role] = self._workers[role].ask(
                    protocol.Open(name=name), protocol.Opened, timeout_s=ASK_S
                )
        sides = [_RoleSide(role, self._workers[role], opened[role], f"{name} ({role})") for role in roles]
        warm_up(list(sides), WARMUP_S)
        metric, calls = self.methods.setdefault(name, choose_metric(list(sides)))
        blocks = self._blocks(sides, metric, calls)
        finished: dict[Role, protocol.Finished] = {}
        for role in roles:
            with _failing(role):
                finished[role] = self._workers[role].ask(
                    protocol.Finish(), protocol.Finished, timeout_s=ASK_S
                )
        figures = {
            role: _figures(blocks, index, opened[role], finished[role]) for index, role in enumerate(roles)
        }
        return Sample(
            metric=metric,
            calls=calls,
            num_blocks=len(blocks.rows),
            log_ratio=_estimate(blocks, 1),
            base=figures["base"],
            head=figures["head"],
            again=_estimate(blocks, 2) if "again" in figures else None,
        )

    def _blocks(self, sides: list[_RoleSide], metric: Metric, calls: int) -> Blocks:
        blocks = Blocks(list(sides), metric, calls, self._coin.getrandbits(31))
        wanted = NUM_BLOCKS_SHORT if max(side.typical_s for side in sides) < SHORT_STEP_S else NUM_BLOCKS
        least_s, most_s = blocks_span(len(self.names))
        begin = time.monotonic()
        while True:
            spent_s, num_blocks = time.monotonic() - begin, len(blocks.rows)
            if num_blocks >= wanted and spent_s > least_s:
                break
            if num_blocks >= FEWEST_BLOCKS and spent_s > most_s:
                break
            core = draw_core(self._coin) if len(blocks.rows) % BLOCKS_OF_A_CORE == 0 else None
            for side in sides:
                side.core = core
            blocks.run()
        return blocks


def blocks_span(num_benchmarks: int) -> tuple[Seconds, Seconds]:
    """How long the blocks of one of so many benchmarks last in a pair, at least and at most.

    The number of blocks that is wanted does not depend on it: of short steps they come first.

    >>> blocks_span(1), blocks_span(5)
    ((1.0, 4.0), (0.4, 2.4))
    """
    return min(LEAST_BLOCKS_S, LEAST_OF_ALL_S / num_benchmarks), min(
        MOST_BLOCKS_S, MOST_OF_ALL_S / num_benchmarks
    )


def _roles(*, twice: bool) -> list[Role]:
    return ["base", "head", "again"] if twice else ["base", "head"]


def _side(role: Role) -> Literal["base", "head"]:
    return "head" if role == "head" else "base"


def _estimate(blocks: Blocks, candidate: int) -> float:
    """ln(candidate/base) of a pair.

    Of wall time the quietest tenth of each side's batches: other programs on the machine only ever add, and may double most
    of them. Of other clocks the blocks, without the outer fifths.
    """
    if blocks.metric != "wall_min":
        return trimmed_mean(blocks.log_ratios(candidate))
    return math.log(_quiet_s(blocks, candidate) / _quiet_s(blocks, 0))


def _quiet_s(blocks: Blocks, side: int) -> Seconds:
    """Geometric mean of the fastest tenth of a side's batches."""
    logs = sorted(math.log(batch.value("wall_min")) for row in blocks.rows for batch in row[side])
    return math.exp(float(np.mean(logs[: max(round(QUIET * len(logs)), 2)])))


def _figures(blocks: Blocks, side: int, opened: protocol.Opened, finished: protocol.Finished) -> Figures:
    calls = np.concatenate(blocks.times(side))
    low, middle, high = (float(one) for one in np.quantile(calls, (0.25, 0.5, 0.75)))
    tails = {
        share: float(np.quantile(calls, share)) if len(calls) >= fewest else None
        for share, fewest in FEWEST_CALLS.items()
    }
    return Figures(
        opened=opened,
        finished=finished,
        median_s=_quiet_s(blocks, side) if blocks.metric == "wall_min" else blocks.median_s(side),
        p95_s=tails[0.95],
        p99_s=tails[0.99],
        jitter=(high - low) / middle if middle > 0 else None,
    )
