"""The search: one lever at a time against the best so far, then the winners against each other, then the whole again from fresh.

Every decision is written down before the next begins. The best configuration is held open between trials, so that what it
compiled is compiled once; each candidate has a process of its own.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from pyrometer.bench.comparison.verdict import Outcome, Verdict, sentence
from pyrometer.errors import NotApplicableError, PyrometerError
from pyrometer.quantity import Bytes, Seconds, format_bytes, format_ratio, format_seconds
from pyrometer.tuning.levers.choice import Configuration, LeverChoice, label_of
from pyrometer.tuning.levers.configuration import with_lever, without_lever
from pyrometer.tuning.levers.registry import find_lever
from pyrometer.tuning.levers.stages import STAGES, Stage
from pyrometer.tuning.outcome import LeverOutcome, LeverResult, StageReport
from pyrometer.tuning.search.budget import TRIAL_SHARE, Budget
from pyrometer.tuning.search.combining import expected_over, gains_of
from pyrometer.tuning.search.finishing import WORTH_DECIDING, leave_out_needless, look_again
from pyrometer.tuning.search.journal import Journal
from pyrometer.tuning.search.ordering import Prediction, in_order
from pyrometer.tuning.search.remaining import PEAKS_S
from pyrometer.tuning.search.settings import TuneSettings
from pyrometer.tuning.trials.gate import Numerics
from pyrometer.tuning.trials.laboratory import Laboratory, OpenConfiguration, opened

LONGEST_TRIAL_S: Seconds = 30.0
SHORTEST_TRIAL_S: Seconds = 4.0
LATEST_OPEN_S: Seconds = 300.0
OPEN_SHARE = 0.6
"""Of the time that is left for trials, to apply one lever: those after it are to be tried, too."""

TYPICAL_S: Seconds = 20.0
"""Of each minute that applying a lever may take at worst."""

QUIET_OPENING_S: Seconds = 6.0
"""To start a process with a small model where nobody else uses the machine; longer starts mean longer compilations, too."""

REOPENED = 0.3
"""Of a configuration's price, to open it again: what it compiled or exported is found ready."""

SLOW_START = 1.5
"""Times what starting a process takes, which a configuration is given to be opened at least."""

NEXT_START = 1.25
"""Times the same, below which no further trial is begun."""

BOTH_OPENED = 1.3
"""Of the time that one process takes to start, for two at once."""

HOPELESS = 1.5
"""An executor so many times slower than the best is not made up for by another precision under it."""

VARIED = 1.25
"""An executor so many times slower than the best is not made up for by other parameters of its own."""

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


def _stage_of(name: str) -> Stage:
    """In which a lever is tried: its own, or the later one of a lever that it needs."""
    lever = find_lever(name)
    return max((lever.stage, *(find_lever(needed).stage for needed in lever.needs)), key=STAGES.index)


def _saving(before: Bytes | None, after: Bytes | None) -> str:
    return f"kept for memory: {format_bytes(after or 0)} in place of {format_bytes(before or 0)}"


@dataclass
class Search:
    """The state of a search.

    Attributes:
        best: the best configuration so far.
        outcomes: of everything that was tried, in order.
        num_steps: that decide most comparisons.
        opening_s: what starting a process takes at present, and the baseline in it took at least.
        ahead: may try what waits elsewhere, and write the outcomes into the journal.
    """

    laboratory: Laboratory
    settings: TuneSettings
    journal: Journal
    predicted: dict[str, Prediction]
    step_s: Seconds
    progress: Callable[[float, str], None]
    budget: Budget
    num_steps: int = Laboratory.num_steps
    opening_s: Seconds = 0.0
    best: Configuration = ()
    outcomes: list[LeverOutcome] = field(default_factory=list)
    stages: list[StageReport] = field(default_factory=list)
    interrupted: bool = False
    ahead: Callable[[Search, Sequence[LeverChoice]], None] | None = None
    _open: OpenConfiguration | None = None
    _executors: dict[str, LeverOutcome] = field(default_factory=dict)
    _first_opening_s: Seconds = 0.0

    def begin_with(self, baseline: OpenConfiguration) -> None:
        """Take over an open baseline."""
        self._open = baseline
        self.opening_s = self._first_opening_s = baseline.elapsed_s
        self.reserve()

    def close(self) -> None:
        """End the worker that holds the best configuration."""
        if self._open is not None:
            self._open.close()
            self._open = None

    # ---- the loop ----------------------------------------------------------------------------------------------

    def run(self, choices: dict[str, list[LeverChoice]]) -> None:
        """Try everything; Ctrl-C ends it and keeps what was decided."""
        try:
            if self.settings.stages:
                for stage in self.settings.stages:
                    self._run_stage(stage, choices)
            else:
                self._try_all(choices)
                look_again(self)
                leave_out_needless(self)
        except KeyboardInterrupt:
            self.interrupted = True

    def _run_stage(self, stage: Stage, choices: dict[str, list[LeverChoice]]) -> None:
        begin, before = self.budget.now(), self.best
        chosen = {name: listed for name, listed in choices.items() if _stage_of(name) == stage}
        self._try_all(chosen)
        kept = [choice.lever for choice in self.best if choice not in before]
        numerics = self._validated() if kept else None
        # What each kept lever brought over the one before it, together; the confirmation measures the whole.
        brought = [each.ratio for each in self.outcomes if each.outcome == "kept" and each.ratio is not None]
        self.stages.append(
            StageReport(
                stage=stage,
                levers=kept,
                ratio=math.prod(brought) if kept else None,
                numerics=numerics,
                elapsed_s=self.budget.now() - begin,
            )
        )

    def _validated(self) -> Numerics:
        """The numerics of the best configuration in a fresh process: the one that is open has trained on while it was timed."""
        with opened(self.laboratory, self.best) as side:
            return self.laboratory.check(side)

    def _try_all(self, choices: dict[str, list[LeverChoice]]) -> None:
        hurried = self._expected_s(choices) > self.budget.trials_left_s
        waiting, decided = in_order(choices, self.predicted, hurried=hurried), set[str]()
        while waiting:
            if self.ahead is not None:
                self.ahead(self, waiting)
            fitting = next((each for each in waiting if self._fits(each)), None)
            # With something to confirm, time is better spent on that than on what would be cut short.
            if not self.has_time or (fitting is None and self.best):
                for left in waiting:
                    if left.lever not in decided:
                        self.outcomes.append(self._untried(left))
                return
            # What would be cut short waits for the end: it must not take the time of those that fit.
            choice = fitting or waiting[0]
            waiting.remove(choice)
            self.progress(self.budget.share, f"{choice.label}; best so far {label_of(self.best)}")
            outcome = self.attempt(choice)
            if outcome is not None:
                self.outcomes.append(outcome)
                decided.add(choice.lever)

    def _expected_s(self, choices: dict[str, list[LeverChoice]]) -> Seconds:
        """About how long trying everything takes."""
        applying_s = sum(
            find_lever(name).minutes * TYPICAL_S * len(listed) for name, listed in choices.items()
        )
        return applying_s + sum(map(len, choices.values())) * (self.opening_s + self._trial_s)

    @property
    def has_time(self) -> bool:
        """Whether another trial may begin."""
        return self.budget.trials_left_s > NEXT_START * self.opening_s + SHORTEST_TRIAL_S

    def _fits(self, choice: LeverChoice) -> bool:
        """Whether applying a lever is expected to end in time, on a machine as busy as this one was when the baseline started."""
        busy = max(1.0, self.opening_s / QUIET_OPENING_S)
        return find_lever(choice.lever).minutes * TYPICAL_S * busy < self._open_limit_s

    def reserve(self) -> None:
        """Set aside what confirming the best configuration takes."""
        price_s = 0.0 if self._open is None else self._open.price_s
        pair_s = BOTH_OPENED * self.opening_s + REOPENED * price_s
        # As long as there is nothing to confirm, the least will do: what is found late is confirmed more briefly.
        num_pairs = self.settings.num_confirmations if self.best else 0
        self.budget.reserve(num_pairs, pair_s, self.step_s, self.then_s)

    @property
    def then_s(self) -> Seconds:
        """After the confirmation, to find out what the hardware leaves where a goal for latency is missed."""
        if self.settings.latency_s is None:
            return 0.0
        return min(PEAKS_S + SLOW_START * self.opening_s, self.budget.total_s * THEN_SHARE)

    def _untried(self, choice: LeverChoice) -> LeverOutcome:
        total, kept = format_seconds(self.budget.total_s), format_seconds(self.budget.reserved_s)
        reason = f"of the budget of {total} too little was left; {kept} are kept for the confirmation"
        if self.opening_s > QUIET_OPENING_S:
            reason += f"; starting a process takes {format_seconds(self.opening_s)} here"
        told = any(each.outcome == "untried" and each.reason == reason for each in self.outcomes)
        configuration = self.configuration_of(choice)
        return replace(self.blank(choice, configuration), reason="" if told else reason)

    # ---- one lever ---------------------------------------------------------------------------------------------

    def attempt(self, choice: LeverChoice) -> LeverOutcome | None:
        """Try a lever on top of the best configuration; `None` where that is what runs already."""
        configuration = self.configuration_of(choice)
        if configuration == self.best:
            return None
        settled = self.settled(choice, configuration)
        if settled is not None:
            return settled
        outcome = self._judged(choice, configuration)
        under = self._under(choice)
        if outcome.outcome in {"slower", "no gain", "undecided"} and under is not None and self.has_time:
            together = self._judged(choice, under)
            if together.ratio is not None and together.ratio < (outcome.ratio or math.inf):
                outcome, configuration = together, under
        self._remember(choice, outcome)
        if outcome.outcome == "kept":
            self.best = configuration
            self.reserve()
        return outcome

    def settled(self, choice: LeverChoice, configuration: Configuration) -> LeverOutcome | None:
        """What is known without a trial."""
        lever = find_lever(choice.lever)
        if (
            lever.place == "structure"
            and lever.executors is not None
            and self._running not in lever.executors
        ):
            reason = f"does nothing under {self._running}, which is faster"
            return replace(self.blank(choice, configuration), outcome="not applicable", reason=reason)
        missing = lever.needs - {each.lever for each in configuration}
        if missing:
            needed = " and ".join(sorted(missing))
            reason = f"has no effect without {needed}, which was not tried before or does not run here"
            return replace(self.blank(choice, configuration), outcome="not applicable", reason=reason)
        known = self._executors.get(choice.lever)
        if known is not None and known.ratio is not None and known.ratio > VARIED:
            reason = (
                f"{known.label} was {format_ratio(known.ratio, known.ci_low or 0, known.ci_high or math.inf)}"
            )
            return replace(self.blank(choice, configuration), reason=reason)
        return None

    def _judged(self, choice: LeverChoice, configuration: Configuration) -> LeverOutcome:
        """What was decided before, or what is decided now and written down."""
        recalled = self.journal.recall(self.best, configuration)
        if recalled is not None:
            return recalled
        outcome = self.tried(choice, configuration)
        if outcome.outcome != "untried":
            self.journal.add(outcome)
        return outcome

    def configuration_of(self, choice: LeverChoice) -> Configuration:
        """The best configuration with a lever; under another executor where the lever does not work under the one that is best."""
        lever, running = find_lever(choice.lever), self._running
        if lever.place == "executor":
            # It competes with what works only under others, such as another precision.
            fit = [
                each
                for each in self.best
                if choice.lever in (find_lever(each.lever).executors or {choice.lever})
            ]
            return with_lever([each for each in self.best if each in fit or each.lever == running], choice)
        if lever.executors is None or running in lever.executors:
            return with_lever(self.best, choice)
        other = next((name for name in self._executors if name in lever.executors), None)
        return with_lever(self._run_by(other), choice)

    def _under(self, choice: LeverChoice) -> Configuration | None:
        """The lever together with an executor under which it pays, where that one was not kept by itself, and is not hopeless."""
        for name in find_lever(choice.lever).pays_under:
            known = self._executors.get(name)
            if known is not None and name != self._running and (known.ratio or 1.0) < HOPELESS:
                return with_lever(self._run_by(name), choice)
        return None

    @property
    def _running(self) -> str:
        executors = (kept.lever for kept in self.best if "executor" in find_lever(kept.lever).excludes)
        return next(executors, "eager")

    def _run_by(self, executor: str | None) -> Configuration:
        """The best configuration under another executor; eager without one."""
        base = without_lever(self.best, self._running)
        if executor is None:
            return base
        known = self._executors[executor]
        return with_lever(base, LeverChoice(lever=known.name, parameters=known.parameters))

    def _remember(self, choice: LeverChoice, outcome: LeverOutcome) -> None:
        """Keep the fastest way to use each executor that computed the right numbers, also where it was not kept."""
        if "executor" not in find_lever(choice.lever).excludes or outcome.ratio is None:
            return
        if outcome.outcome == "kept" or choice.lever not in self._executors:
            self._executors[choice.lever] = outcome

    def tried(
        self, choice: LeverChoice, configuration: Configuration, *, longer: bool = False
    ) -> LeverOutcome:
        """Open a configuration, weigh it, and hold it open in place of the best where it is better.

        With `longer` the comparison may take all of the time that is left for trials.
        """
        now, limit_s = self.budget.now, self._open_limit_s
        begin, blank = now(), self.blank(choice, configuration)
        try:
            candidate = self.laboratory.open(configuration, timeout_s=limit_s)
        except NotApplicableError as error:
            return replace(blank, outcome="not applicable", reason=str(error), elapsed_s=now() - begin)
        except PyrometerError as error:
            took_s = now() - begin
            if limit_s < LATEST_OPEN_S and took_s >= limit_s:
                reason = f"applying it takes longer than {format_seconds(limit_s)}, which is too much of what was left"
                return replace(blank, reason=f"{reason} of the budget", elapsed_s=took_s)
            return replace(blank, outcome="failed", reason=str(error), elapsed_s=took_s)
        # Processes start more slowly while others use the machine, and what is set aside has to follow.
        self.opening_s = max(self._first_opening_s, candidate.elapsed_s - candidate.price_s)
        self.reserve()
        with contextlib.ExitStack() as stack:
            stack.callback(candidate.close)
            try:
                weighed = self._weighed(blank, candidate, longer=longer)
            except PyrometerError as error:
                weighed = replace(blank, outcome="failed", reason=str(error))
            if weighed.outcome == "kept":
                stack.pop_all()
                self.close()
                self._open = candidate
        return replace(weighed, elapsed_s=now() - begin)

    @property
    def _open_limit_s(self) -> Seconds:
        left_s = (self.budget.trials_left_s - SHORTEST_TRIAL_S) * OPEN_SHARE
        return max(min(LATEST_OPEN_S, left_s), SLOW_START * self.opening_s)

    def _weighed(self, blank: LeverOutcome, candidate: OpenConfiguration, *, longer: bool) -> LeverOutcome:
        """Is it applied, does it compute the same, is it within memory, and is it faster?"""
        opened = candidate.opened
        priced = replace(
            blank,
            price_s=candidate.price_s,
            artefact_bytes=opened.artefact_bytes,
            fixed_shapes=opened.fixed_shapes,
        )
        if opened.not_applied is not None:
            return replace(priced, outcome="not applied", reason=opened.not_applied)
        numerics = self.laboratory.check(candidate)
        checked = replace(
            priced,
            max_abs_error=numerics.max_abs,
            max_rel_error=numerics.max_rel,
            cosine=numerics.cosine,
            metric=numerics.metric,
        )
        if numerics.refused is not None:
            return replace(checked, outcome="wrong numbers", reason=numerics.refused)
        trial_s = (
            min(max(self.budget.trials_left_s, self._trial_s), LONGEST_TRIAL_S) if longer else self._trial_s
        )
        verdict = self.laboratory.compare(
            self._best_side(), candidate, trial_s, seed=self.settings.seed, gives_up=WORTH_DECIDING
        )
        timed = replace(
            checked,
            ratio=verdict.ratio,
            ci_low=verdict.ci_low,
            ci_high=verdict.ci_high,
            confidence=verdict.confidence,
            num_blocks=verdict.num_blocks,
            peak_bytes=self.laboratory.peak_bytes(candidate),
        )
        return self._decided(timed, verdict)

    def _decided(self, timed: LeverOutcome, verdict: Verdict) -> LeverOutcome:
        peak, limit = timed.peak_bytes, self.settings.memory_bytes
        best_peak = self.best_peak_bytes if limit is not None else None
        if verdict.outcome != "faster":
            if timed.stage == "memory" and self._is_nearer(peak, best_peak) and self._is_in_time(verdict):
                return replace(
                    timed, outcome="kept", reason=f"{sentence(verdict)}; {_saving(best_peak, peak)}"
                )
            return replace(timed, outcome=_RESULTS[verdict.outcome], reason=sentence(verdict))
        if limit is not None and self.is_further(peak, best_peak):
            needs = f"faster, but it takes {format_bytes(peak or 0)} where {format_bytes(limit)} is the goal"
            return replace(timed, outcome="no gain", reason=needs)
        return replace(timed, outcome="kept")

    @property
    def best_peak_bytes(self) -> Bytes:
        """The peak of memory of the best configuration."""
        return self.laboratory.peak_bytes(self._best_side())

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

    @property
    def _trial_s(self) -> Seconds:
        wanted_s = max(SHORTEST_TRIAL_S, self.num_steps * self.step_s)
        allowed_s = max(SHORTEST_TRIAL_S, self.budget.trials_left_s * TRIAL_SHARE)
        return min(wanted_s, allowed_s, LONGEST_TRIAL_S)

    def _best_side(self) -> OpenConfiguration:
        if self._open is None or self._open.configuration != self.best:
            self.close()
            self._open = self.laboratory.open(self.best)
        return self._open

    def blank(self, choice: LeverChoice, configuration: Configuration) -> LeverOutcome:
        """The outcome of a lever before anything is known of it."""
        lever, predicted = find_lever(choice.lever), self.expected(choice, configuration)
        return LeverOutcome(
            name=choice.lever,
            parameters=choice.parameters,
            outcome="untried",
            stage=lever.stage,
            fix_class=lever.fix_class,
            against=list(self.best),
            configuration=list(configuration),
            predicted_low=predicted.low,
            predicted_high=predicted.high,
            rules=list(predicted.rules),
        )

    def expected(self, choice: LeverChoice, configuration: Configuration) -> Prediction:
        """What is predicted of a lever, over the best so far: some of its gain was brought by others, or goes with what it replaces."""
        predicted = self.predicted.get(choice.lever, Prediction())
        known = {name: each.ratio for name, each in self._executors.items() if each.ratio is not None}
        return expected_over(
            predicted, choice.lever, known | gains_of(self.outcomes), self.best, configuration
        )
