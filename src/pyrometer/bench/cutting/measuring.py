"""Measuring what a step takes without its most expensive places: a short paired run with each of them cut out.

The places that a step calls are watched in one step and recorded in two (what they are given and return). Then steps as they
are and steps in which a place returns what it returned before run in turn, in mirrored blocks of random order; all else
runs, also the backward pass on both sides of the place.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from pyrometer.bench.autocorrelation import Floats
from pyrometer.bench.ceiling import Ceiling
from pyrometer.bench.clock import Clock, clock_for
from pyrometer.bench.comparison.interleaving import Blocks, Side, choose_metric, warm_up
from pyrometer.bench.comparison.pairing import hodges_lehmann
from pyrometer.bench.cutting.keeping import UsedState
from pyrometer.bench.cutting.observing import STEPS_VARIED, Watch, not_cut
from pyrometer.bench.cutting.place import Cuttable
from pyrometer.bench.cutting.sides import Stage, StagedSession
from pyrometer.bench.distributions import student_quantile
from pyrometer.errors import PyrometerError
from pyrometer.quantity import Seconds, format_seconds
from pyrometer.workload.failure import described
from pyrometer.workload.workload import Session, Workload

MOST_PLACES = 3
MOST_BLOCKS = 24
FEWEST_BLOCKS = 3
CONFIDENCE = 0.95

MOST_WATCHED = 8
WATCH_SHARE = 0.1
"""Of the budget, for watching what a step calls."""

WARM_SHARE = 0.15
"""Of what is left of it, for warming up."""

WARM_STEPS = 20
"""Of each side, that warming up takes at most."""

BESIDE = 0.02
"""Of a step, by which cutting out may change it otherwise (caches, the allocator), so that intervals reach so much further."""

NUM_STEPS = 5 + 4 * FEWEST_BLOCKS
"""Watched, recorded, one with the place cut out, and the fewest blocks of a place; those with other inputs come on top."""


@dataclass
class Ceilings:
    """What was measured, and why there is no more."""

    ceilings: list[Ceiling] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def measure_ceilings(
    work: Workload,
    *,
    step_s: Seconds,
    budget_s: Seconds,
    functions: bool = True,
    most_blocks: int = MOST_BLOCKS,
) -> Ceilings:
    """Measure what a step takes without its most expensive places.

    Args:
        work: its state is restored; of a function, that of the modules and optimizers which a step uses, as the first step left it.
        step_s: what a step takes, as measured.
        budget_s: for all places together; no block is begun afterwards.
        functions: cut out functions; else the loader alone.
        most_blocks: of paired steps; fewer where the budget ends before.

    Raises:
        InputError: the workload cannot be prepared.
    """
    if sys.getprofile() is not None:
        return Ceilings(notes=["no place was cut out of the step: another profiler watches the calls"])
    if step_s > budget_s:
        return Ceilings(notes=[_too_long(step_s, budget_s)])
    with work.open() as session:
        session.activate()
        return _Experiment(work, session, step_s, budget_s, most_blocks).run(functions=functions)


def _too_long(step_s: Seconds, budget_s: Seconds) -> str:
    return (
        f"no place was cut out of the step: with {format_seconds(step_s)} a step that takes "
        f"{format_seconds(step_s * NUM_STEPS)}, and {format_seconds(budget_s)} are left for it"
    )


class _Experiment:
    def __init__(
        self, work: Workload, session: Session, step_s: Seconds, budget_s: Seconds, most_blocks: int
    ) -> None:
        self._most_blocks = most_blocks
        self._session = session
        self._watch = Watch(work, session)
        self._clock: Clock = clock_for(session.device)
        self._step_s = step_s
        self._deadline_s = time.perf_counter() + budget_s
        self._stage = Stage(session)
        self._notes = self._watch.notes

    def run(self, *, functions: bool) -> Ceilings:
        try:
            ceilings = self._measured(functions=functions)
        except Exception as error:  # noqa: BLE001 - the user's program failed, which the measurement survives
            self._notes.append(f"no place was cut out of the step: a step raised {described(error)}")
            ceilings = []
        finally:
            self._stage.show(None)
        return Ceilings(ceilings, list(dict.fromkeys(self._notes)))

    def _measured(self, *, functions: bool) -> list[Ceiling]:
        used = UsedState()
        start = time.perf_counter()
        with used.noting():
            self._watch.step()
        self._clock.synchronize()
        # The measured step may be one of a busy time.
        self._step_s = min(self._step_s, time.perf_counter() - start)
        if self._step_s * NUM_STEPS > self._left_s:
            self._notes.append(_too_long(self._step_s, self._left_s))
            return []
        # A session that knows its model restores it.
        with used.preserved() if self._watch.model is None else contextlib.nullcontext():
            return self._cut(functions=functions)

    def _cut(self, *, functions: bool) -> list[Ceiling]:
        places = self._watch.places(self._num_watched, functions=functions)
        if not places:
            return []
        self._watch.record(places, vary=self._left_s > (NUM_STEPS + STEPS_VARIED) * self._step_s)
        sides = list(self._sides(places))
        if not sides:
            return []
        blocks = self._blocks([StagedSession(self._stage), *(side for _, side in sides)])
        return [self._ceiling(*pair, blocks, number) for number, pair in enumerate(sides, start=1)]

    @property
    def _num_watched(self) -> int:
        """Steps whose calls are watched, in which they take up to twice as long."""
        return int(np.clip(WATCH_SHARE * self._left_s / (2 * self._step_s), 1, MOST_WATCHED))

    @property
    def _left_s(self) -> Seconds:
        return self._deadline_s - time.perf_counter()

    def _needed_s(self, cut_s: Seconds) -> Seconds:
        """For the fewest blocks: two steps as they are, and two without each place with one before them that is not timed."""
        return FEWEST_BLOCKS * (2 * self._step_s + 4 * cut_s)

    def _sides(self, places: list[Cuttable]) -> Iterator[tuple[Cuttable, StagedSession]]:
        """The first places without which a step runs through, as many as there is time for."""
        cut: list[Cuttable] = []
        cut_s = 0.0
        for place in _in_order(places):
            if len(cut) == MOST_PLACES or self._left_s < self._needed_s(cut_s) + self._step_s:
                return
            if any(place.is_mostly(other) for other in cut):
                continue
            start = time.perf_counter()
            side, problem = self._tried(place)
            one_s = time.perf_counter() - start
            if side is None:
                self._notes.append(not_cut(place.name, problem))
                continue
            if self._left_s < self._needed_s(cut_s + one_s):
                continue
            cut_s += one_s
            cut.append(place)
            if place.recorder.neglected is not None:
                self._notes.append(
                    f"{place.name} was cut out although {place.recorder.neglected}: the steps without it left that undone"
                )
            yield place, side

    def _tried(self, place: Cuttable) -> tuple[StagedSession | None, str]:
        """The steps without a place, after one that ran and showed what the program writes to; or why there are none."""
        if place.recorder.problem is not None:
            return None, place.recorder.problem
        side = StagedSession(self._stage, place)
        problem = self._problem_of(side)
        return (side, "") if problem is None else (None, problem)

    def _problem_of(self, side: StagedSession) -> str | None:
        """Why a step does not run through."""
        assert side.replayer is not None
        side.replayer.watch()
        try:
            side.activate()  # runs a step
            self._clock.synchronize()
        except PyrometerError as error:
            return f"without it the step goes another way ({error})"
        except Exception as error:  # noqa: BLE001 - whatever the user's code does without its results
            return f"without it the step raises {described(error)}"
        finally:
            side.replayer.settle()
            self._stage.show(None)
        return None

    def _blocks(self, sessions: list[StagedSession]) -> Blocks:
        sides = [Side(f"side {i}", session, self._clock) for i, session in enumerate(sessions)]
        warm_up(sides, min(WARM_SHARE * self._left_s, WARM_STEPS * len(sides) * self._step_s))
        metric, calls = choose_metric(sides)
        if calls * self._needed_s(sum(side.typical_s for side in sides[1:])) > self._left_s:
            calls = 1
        blocks = Blocks(sides, metric, calls, seed=0)
        longest_s = 0.0
        while len(blocks.rows) < self._most_blocks:
            if len(blocks.rows) >= FEWEST_BLOCKS and self._left_s < longest_s:
                break
            start = time.perf_counter()
            blocks.run()
            longest_s = max(longest_s, time.perf_counter() - start)
        return blocks

    def _ceiling(self, place: Cuttable, side: StagedSession, blocks: Blocks, number: int) -> Ceiling:
        metric, _ = choose_metric([blocks.sides[0], blocks.sides[number]])
        estimate, low, high = interval_of(blocks.log_ratios(number, metric))
        recorder, replayer = place.recorder, side.replayer
        # Handing out is no part of a step without the place.
        handing = 0.0 if replayer is None else replayer.spent_s / blocks.median_s(0)
        return Ceiling(
            where=place.where_in(self._watch.model),
            what=place.what,
            last_line=place.last_line,
            calls_per_step=len(recorder.calls),
            ratio=max(math.exp(estimate) - handing, 0.0),
            ratio_low=max(math.exp(low) - handing - BESIDE, 0.0),
            ratio_high=max(math.exp(high) - handing, 0.0) + BESIDE,
            pairs=2 * len(blocks.rows) * blocks.calls,
            same_inputs=recorder.same_inputs,
            same_results=recorder.same_results,
        )


def _in_order(places: list[Cuttable]) -> list[Cuttable]:
    """The loader, what may be computed once, and then by cost; a place that is mostly another comes last."""
    able = [place for place in places if place.recorder.problem is None]
    return sorted(
        places,
        key=lambda place: (
            place.what != "loader",
            any(place.is_mostly(other) for other in able),
            not place.recorder.is_constant,
            -place.share,
        ),
    )


def interval_of(blocks: Floats) -> tuple[float, float, float]:
    """The centre of the blocks with its interval: Hodges-Lehmann, or Student's where there are too few for ranks.

    >>> estimate, low, high = interval_of(np.array([-0.5, -0.51, -0.49]))
    >>> low < estimate < high
    True
    """
    estimate, low, high = hodges_lehmann(blocks, 1 - CONFIDENCE)
    if math.isfinite(low):
        return estimate, low, high
    centre, spread = float(np.mean(blocks)), float(np.std(blocks, ddof=1)) / math.sqrt(len(blocks))
    reach = student_quantile((1 + CONFIDENCE) / 2, len(blocks) - 1) * spread
    return centre, centre - reach, centre + reach
