"""A configuration against the best so far: is it in force, does it compute the same, is it within memory, and is it faster?

The best configuration is held open between trials, so that what it compiled is compiled once; each candidate has a process of
its own.
"""

from __future__ import annotations

import contextlib
import math
import statistics
from dataclasses import dataclass, field

from msgspec.structs import replace

from pyrometer.bench.comparison.verdict import Outcome, Verdict, sentence
from pyrometer.errors import NotApplicableError, PyrometerError
from pyrometer.quantity import Bytes, Seconds, format_bytes, format_seconds
from pyrometer.tuning.levers.choice import Configuration, LeverChoice
from pyrometer.tuning.levers.registry import find_lever
from pyrometer.tuning.outcome import LeverOutcome, LeverResult
from pyrometer.tuning.search.budget import PAIR_S, TRIAL_SHARE, Budget, Costs, shortest_pair_s
from pyrometer.tuning.search.remaining import PEAKS_S
from pyrometer.tuning.search.settings import TuneSettings
from pyrometer.tuning.trials.laboratory import Laboratory, OpenConfiguration

LONGEST_TRIAL_S: Seconds = 30.0
SHORTEST_TRIAL_S: Seconds = 4.0
LATEST_OPEN_S: Seconds = 300.0
OPEN_SHARE = 0.6
"""Of the time that is left for trials, to apply one lever: those after it are to be tried, too."""

TYPICAL_S: Seconds = 20.0
"""Of each minute that applying a lever may take at worst."""

HEAVY_MINUTES = 0.5
"""From which what a lever takes says how long others like it take here."""

QUIET_OPENING_S: Seconds = 6.0
"""To start a process with a small model where nobody else uses the machine; longer starts mean longer compilations, too."""

SLOW_START = 1.5
"""Times what starting a process takes, which a configuration is given to be opened at least."""

NEXT_START = 1.25
"""Times the same, below which no further trial is begun."""

WORTH_DECIDING = 0.97
"""Ratio above which a lever is dropped at the first look, undecided: the time goes to those that promise more."""

THEN_SHARE = 0.15
"""Of the budget at most, to find out what the hardware leaves where a goal was missed."""

LEAST_SAVING = 0.02
"""Of the peak of memory, as a share: single runs of one program differ by about that."""

_RESULTS: dict[Outcome, LeverResult] = {
    "faster": "kept",
    "slower": "slower",
    "same": "no gain",
    "undecided": "undecided",
}


@dataclass
class Weighing:
    """Weighs one configuration after the other.

    Attributes:
        step_s: of the baseline.
    """

    laboratory: Laboratory
    settings: TuneSettings
    budget: Budget
    step_s: Seconds
    costs: Costs = field(init=False)
    _open: OpenConfiguration | None = field(default=None, init=False)
    _least_opening_s: Seconds = field(default=0.0, init=False)
    _paces: list[float] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.costs = Costs(shortest_pair_s(self.step_s))

    def begin_with(self, baseline: OpenConfiguration) -> None:
        """Take over an open baseline."""
        self._open = baseline
        self.costs.opening_s = self._least_opening_s = baseline.elapsed_s
        self.reserve(())

    def close(self) -> None:
        """End the worker that holds the best configuration."""
        if self._open is not None:
            self._open.close()
            self._open = None

    # ---- time ----------------------------------------------------------------------------------------------------

    def reserve(self, best: Configuration) -> None:
        """Set aside what confirming the best configuration takes, and as long as there is none, less: it is confirmed more briefly."""
        num_pairs = self.settings.num_confirmations * self.laboratory.more_pairs if best else 0
        self.budget.reserve(num_pairs, self.costs, self.then_s)

    @property
    def then_s(self) -> Seconds:
        """After the confirmation, to find out what the hardware leaves where a goal for latency is missed."""
        if self.settings.latency_s is None:
            return 0.0
        return min(PEAKS_S + SLOW_START * self.costs.opening_s, self.budget.total_s * THEN_SHARE)

    @property
    def has_time(self) -> bool:
        """Whether another trial may begin."""
        return self.budget.trials_left_s > NEXT_START * self.costs.opening_s + SHORTEST_TRIAL_S

    @property
    def trial_s(self) -> Seconds:
        """What the next comparison may take."""
        wanted_s = max(SHORTEST_TRIAL_S, self.laboratory.num_steps * self.step_s)
        allowed_s = max(SHORTEST_TRIAL_S, self.budget.trials_left_s * TRIAL_SHARE)
        return min(wanted_s, allowed_s, LONGEST_TRIAL_S)

    def applying_s(self, choice: LeverChoice, best: Configuration) -> Seconds:
        """About how long applying a lever takes here: by what others took, else on a machine as busy as this one was at the start.

        Args:
            choice: the lever, and with what.
            best: what stays beside it, and is compiled or exported anew with it.
        """
        busy = max(1.0, self.costs.opening_s / QUIET_OPENING_S)
        pace = statistics.fmean(self._paces) if self._paces else busy
        minutes = find_lever(choice.lever).minutes_with(choice.parameters)
        return minutes * TYPICAL_S * pace + (self.costs.price_s if best else 0.0)

    def open_limit_s(self, share: float = OPEN_SHARE) -> Seconds:
        """What applying the next lever may take, of the time that is left for trials."""
        left_s = (self.budget.trials_left_s - SHORTEST_TRIAL_S) * share
        return max(min(LATEST_OPEN_S, left_s), SLOW_START * self.costs.opening_s)

    # ---- one configuration ---------------------------------------------------------------------------------------

    def weigh(self, blank: LeverOutcome, *, longer: bool = False, share: float = OPEN_SHARE) -> LeverOutcome:
        """Open a configuration, weigh it, and hold it open in place of the best where it is better.

        Args:
            blank: what is tried, and against what.
            longer: the comparison may take all of the time that is left for trials.
            share: of that time, which applying it may take.
        """
        now, best = self.budget.now, tuple(blank.against)
        begin = now()
        end_s = begin + self.open_limit_s(share)
        with contextlib.ExitStack() as stack:
            try:
                candidate = self.laboratory.open(tuple(blank.configuration), timeout_s=end_s - begin)
                stack.callback(candidate.close)
                # Processes start more slowly while others use the machine, and what is set aside has to follow.
                self.costs.opening_s = max(self._least_opening_s, candidate.elapsed_s - candidate.price_s)
                self.reserve(best)
                self._note_pace(blank, candidate.price_s)
                end_s = now() + max(self.budget.trials_left_s, SLOW_START * self.costs.opening_s)
                weighed = self._weighed(blank, candidate, end_s, longer=longer)
            except NotApplicableError as error:
                weighed = replace(blank, outcome="not applicable", reason=str(error))
            except (PyrometerError, OSError) as error:  # a full disk ends no search
                took_s = now() - begin
                if self._open is not None and not self._open.worker.alive:
                    self.close()  # the next trial opens it again
                    weighed = replace(blank, reason=f"what it was compared with has ended: {error}")
                elif now() >= end_s and took_s < LATEST_OPEN_S:
                    self._note_pace(blank, took_s)
                    total, took = format_seconds(self.budget.total_s), format_seconds(took_s)
                    weighed = replace(
                        blank, reason=f"not ready within the {took} that the budget of {total} left for it"
                    )
                else:
                    weighed = replace(blank, outcome="failed", reason=str(error))
            if weighed.outcome == "kept":
                stack.pop_all()
                self.close()
                self._open = candidate
                self.costs.price_s = candidate.price_s
        return replace(weighed, elapsed_s=now() - begin)

    def _note_pace(self, tried: LeverOutcome, took_s: Seconds) -> None:
        minutes = find_lever(tried.name).minutes_with(tried.parameters)
        if minutes >= HEAVY_MINUTES and any(each.lever == tried.name for each in tried.configuration):
            self._paces.append(took_s / (minutes * TYPICAL_S))

    def _weighed(
        self, blank: LeverOutcome, candidate: OpenConfiguration, end_s: Seconds, *, longer: bool
    ) -> LeverOutcome:
        opened, now = candidate.opened, self.budget.now
        priced = replace(
            blank,
            price_s=candidate.price_s,
            artefact_bytes=opened.artefact_bytes,
            fixed_shapes=opened.fixed_shapes,
        )
        if opened.not_applied is not None:
            return replace(priced, outcome="not applied", reason=opened.not_applied)
        begin = now()
        numerics = self.laboratory.check(candidate, timeout_s=end_s - begin)
        check_s = now() - begin
        checked = replace(
            priced,
            max_abs_error=numerics.max_abs,
            max_rel_error=numerics.max_rel,
            cosine=numerics.cosine,
            metric=numerics.metric,
        )
        if numerics.refused is not None:
            return replace(checked, outcome="wrong numbers", reason=numerics.refused)
        verdict = self._compared(candidate, tuple(blank.against), longer=longer)
        timed = replace(
            checked,
            ratio=verdict.ratio,
            ci_low=verdict.ci_low,
            ci_high=verdict.ci_high,
            confidence=verdict.confidence,
            num_blocks=verdict.num_blocks,
            peak_bytes=self.laboratory.peak_bytes(candidate),
        )
        decided = self._decided(timed, verdict)
        if decided.outcome == "kept":
            self.costs.check_s = check_s
        return decided

    def _compared(self, candidate: OpenConfiguration, best: Configuration, *, longer: bool) -> Verdict:
        seed, ours = self.settings.seed, self.best_side(best)
        trial_s = (
            min(max(self.budget.trials_left_s, self.trial_s), LONGEST_TRIAL_S) if longer else self.trial_s
        )
        gives_up = math.inf if longer else WORTH_DECIDING
        begin = self.budget.now()
        verdict = self.laboratory.compare(ours, candidate, trial_s, seed=seed, gives_up=gives_up)
        if verdict.outcome == "faster" and verdict.num_blocks:
            # The same, with as many blocks as a pair of the confirmation has.
            warming_s = self.budget.now() - begin - verdict.blocks_s
            blocks_s = self.laboratory.num_blocks * verdict.blocks_s / verdict.num_blocks
            self.costs.compared_s = min(warming_s + blocks_s, PAIR_S / self.laboratory.more_pairs)
        return verdict

    def best_side(self, best: Configuration) -> OpenConfiguration:
        """The best configuration, open."""
        if self._open is None or not self._open.worker.alive or self._open.configuration != best:
            self.close()
            self._open = self.laboratory.open(best)
        return self._open

    # ---- memory --------------------------------------------------------------------------------------------------

    def _decided(self, timed: LeverOutcome, verdict: Verdict) -> LeverOutcome:
        peak, limit = timed.peak_bytes, self.settings.memory_bytes
        best_peak = self.best_peak_bytes(tuple(timed.against))
        if verdict.outcome != "faster":
            if timed.stage == "memory" and self._is_nearer(peak, best_peak) and self._is_in_time(verdict):
                saving = (
                    f"kept for memory: {format_bytes(peak or 0)} in place of {format_bytes(best_peak or 0)}"
                )
                return replace(timed, outcome="kept", reason=f"{sentence(verdict)}; {saving}")
            return replace(timed, outcome=_RESULTS[verdict.outcome], reason=sentence(verdict))
        if limit is not None and self.is_further(peak, best_peak):
            needs = f"faster, but it takes {format_bytes(peak or 0)} where {format_bytes(limit)} is the goal"
            return replace(timed, outcome="no gain", reason=needs)
        return replace(timed, outcome="kept")

    def best_peak_bytes(self, best: Configuration) -> Bytes | None:
        """The peak of memory of the best configuration, where there is a goal for it and it can still be opened."""
        if self.settings.memory_bytes is None:
            return None
        try:
            return self.laboratory.peak_bytes(self.best_side(best))
        except PyrometerError:
            return None

    def _is_nearer(self, peak: Bytes | None, than: Bytes | None) -> bool:
        """Whether a peak comes nearer to a goal that is not met yet."""
        limit = self.settings.memory_bytes or math.inf
        return peak is not None and than is not None and than > limit and peak < than * (1 - LEAST_SAVING)

    def is_further(self, peak: Bytes | None, than: Bytes | None) -> bool:
        """Whether a peak exceeds the goal, and what there was before."""
        limit = self.settings.memory_bytes or math.inf
        return peak is not None and than is not None and peak > max(limit, than * (1 + LEAST_SAVING))

    def _is_in_time(self, verdict: Verdict) -> bool:
        """Whether steps stay within the goal for latency."""
        goal, reached = self.settings.latency_s, verdict.candidate_s
        return goal is None or (reached is not None and reached <= goal)
