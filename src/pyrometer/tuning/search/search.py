"""The search: one lever at a time against the best so far, then the winners against each other, then the whole again from fresh.

Every decision is written down before the next begins. The best configuration is held open between trials, so that what it
compiled is compiled once; each candidate has a process of its own.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from pyrometer.bench.comparison.verdict import Outcome, Verdict, sentence
from pyrometer.errors import NotApplicableError, PyrometerError
from pyrometer.quantity import Bytes, Seconds, format_bytes, format_ratio, format_seconds
from pyrometer.tuning.levers.choice import Configuration, LeverChoice, label_of
from pyrometer.tuning.levers.configuration import lacks, with_lever, without_lever
from pyrometer.tuning.levers.registry import find_lever
from pyrometer.tuning.levers.stages import Stage
from pyrometer.tuning.outcome import LeverOutcome, LeverResult, StageReport
from pyrometer.tuning.search.journal import Journal
from pyrometer.tuning.search.ordering import Prediction, in_order
from pyrometer.tuning.search.settings import TuneSettings
from pyrometer.tuning.trials.gate import Numerics
from pyrometer.tuning.trials.laboratory import Laboratory, OpenConfiguration, opened

LONGEST_TRIAL_S: Seconds = 30.0
SHORTEST_TRIAL_S: Seconds = 4.0
STEPS_TO_DECIDE = 60
LATEST_OPEN_S: Seconds = 300.0
LEAST_SAVING = 0.02
"""Of the peak of memory, as a share: single runs of one program differ by about that."""

_RESULTS: dict[Outcome, LeverResult] = {
    "faster": "kept",
    "slower": "slower",
    "same": "no gain",
    "undecided": "undecided",
}


def _saving(before: Bytes | None, after: Bytes | None) -> str:
    return f"kept for memory: {format_bytes(after or 0)} in place of {format_bytes(before or 0)}"


@dataclass
class Search:
    """The state of a search.

    Attributes:
        best: the best configuration so far.
        outcomes: of everything that was tried, in order.
        executors: configurations of each executor that computed the right numbers, by its name, the fastest first.
    """

    laboratory: Laboratory
    settings: TuneSettings
    journal: Journal
    predicted: dict[str, Prediction]
    step_s: Seconds
    progress: Callable[[float, str], None]
    now: Callable[[], Seconds] = time.monotonic
    best: Configuration = ()
    outcomes: list[LeverOutcome] = field(default_factory=list)
    stages: list[StageReport] = field(default_factory=list)
    interrupted: bool = False
    _open: OpenConfiguration | None = None
    _executors: dict[str, LeverChoice] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._began_s = self.now()

    def begin_with(self, baseline: OpenConfiguration) -> None:
        """Take over an open baseline."""
        self._open = baseline

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
                self._try_all(in_order(choices, self.predicted))
                self._prune()
        except KeyboardInterrupt:
            self.interrupted = True

    def _run_stage(self, stage: Stage, choices: dict[str, list[LeverChoice]]) -> None:
        begin, before = self.now(), self.best
        chosen = {name: listed for name, listed in choices.items() if find_lever(name).stage == stage}
        self._try_all(in_order(chosen, self.predicted))
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
                elapsed_s=self.now() - begin,
            )
        )

    def _validated(self) -> Numerics:
        """The numerics of the best configuration in a fresh process: the one that is open has trained on while it was timed."""
        with opened(self.laboratory, self.best) as side:
            return self.laboratory.check(side)

    def _try_all(self, ranked: Sequence[LeverChoice]) -> None:
        decided: set[str] = set()
        for number, choice in enumerate(ranked):
            if self._spent_s > self.settings.budget_s:
                self.outcomes += [
                    self._untried(left) for left in ranked[number:] if left.lever not in decided
                ]
                return
            share = min(self._spent_s / self.settings.budget_s, 0.99)
            self.progress(share, f"{choice.label}; best so far {label_of(self.best)}")
            outcome = self.attempt(choice)
            if outcome is not None:
                self.outcomes.append(outcome)
                decided.add(choice.lever)

    @property
    def _spent_s(self) -> Seconds:
        return self.now() - self._began_s

    def _untried(self, choice: LeverChoice) -> LeverOutcome:
        reason = f"the budget of {format_seconds(self.settings.budget_s)} was spent"
        return replace(self._blank(choice, self.best), reason=reason)

    # ---- one lever ---------------------------------------------------------------------------------------------

    def attempt(self, choice: LeverChoice) -> LeverOutcome | None:
        """Try a lever on top of the best configuration; `None` where that is what runs already."""
        configuration = self._configuration(choice)
        if configuration is None or configuration == self.best:
            return None
        missing = lacks(find_lever(choice.lever), configuration)
        if missing:
            needed = ", ".join(sorted(missing))
            reason = f"has no effect without {needed}, which was not kept"
            return replace(self._blank(choice, configuration), outcome="not applicable", reason=reason)
        recalled = self.journal.recall(self.best, configuration)
        outcome = recalled or self._tried(choice, configuration)
        if recalled is None:
            self.journal.add(outcome)
        self._remember(choice, outcome)
        if outcome.outcome == "kept":
            self.best = configuration
        return outcome

    def _configuration(self, choice: LeverChoice) -> Configuration | None:
        """The best configuration with a lever; under another executor where the lever does not work under the one that is best."""
        lever, base = find_lever(choice.lever), self.best
        executor = next((kept for kept in base if "executor" in find_lever(kept.lever).excludes), None)
        running = executor.lever if executor else "eager"
        if lever.executors is not None and running not in lever.executors and lever.place != "executor":
            base = without_lever(base, running)
            other = next((self._executors[name] for name in self._executors if name in lever.executors), None)
            if other is not None:
                base = with_lever(base, other)
            elif "eager" not in lever.executors:
                return with_lever(base, choice)
        return with_lever(base, choice)

    def _remember(self, choice: LeverChoice, outcome: LeverOutcome) -> None:
        """Keep the fastest way to use each executor that computed the right numbers, also where it was not kept."""
        if "executor" in find_lever(choice.lever).excludes and outcome.outcome in {
            "kept",
            "no gain",
            "slower",
            "undecided",
        }:
            self._executors.setdefault(choice.lever, choice)

    def _tried(self, choice: LeverChoice, configuration: Configuration) -> LeverOutcome:
        """Open a configuration, weigh it, and hold it open in place of the best where it is better."""
        begin, blank = self.now(), self._blank(choice, configuration)
        try:
            candidate = self.laboratory.open(configuration, timeout_s=self._open_limit_s)
        except NotApplicableError as error:
            return replace(blank, outcome="not applicable", reason=str(error), elapsed_s=self.now() - begin)
        except PyrometerError as error:
            return replace(blank, outcome="failed", reason=str(error), elapsed_s=self.now() - begin)
        with contextlib.ExitStack() as stack:
            stack.callback(candidate.close)
            try:
                weighed = self._weighed(blank, candidate)
            except PyrometerError as error:
                weighed = replace(blank, outcome="failed", reason=str(error))
            if weighed.outcome == "kept":
                stack.pop_all()
                self.close()
                self._open = candidate
        return replace(weighed, elapsed_s=self.now() - begin)

    @property
    def _open_limit_s(self) -> Seconds:
        return max(LATEST_OPEN_S, self.settings.budget_s / 2)

    def _weighed(self, blank: LeverOutcome, candidate: OpenConfiguration) -> LeverOutcome:
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
        verdict = self.laboratory.compare(
            self._best_side(), candidate, self._trial_s, seed=self.settings.seed
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
        best_peak = self._best_peak_bytes if limit is not None else None
        if verdict.outcome != "faster":
            if timed.stage == "memory" and self._is_nearer(peak, best_peak) and self._is_in_time(verdict):
                return replace(
                    timed, outcome="kept", reason=f"{sentence(verdict)}; {_saving(best_peak, peak)}"
                )
            return replace(timed, outcome=_RESULTS[verdict.outcome], reason=sentence(verdict))
        if limit is not None and self._is_further(peak, best_peak):
            needs = f"faster, but it takes {format_bytes(peak or 0)} where {format_bytes(limit)} is the goal"
            return replace(timed, outcome="no gain", reason=needs)
        return replace(timed, outcome="kept")

    @property
    def _best_peak_bytes(self) -> Bytes:
        return self.laboratory.peak_bytes(self._best_side())

    def _is_nearer(self, peak: Bytes | None, than: Bytes | None) -> bool:
        """Whether a peak comes nearer to a goal that is not met yet."""
        limit = self.settings.memory_bytes
        if limit is None or peak is None or than is None:
            return False
        return than > limit and peak < than * (1 - LEAST_SAVING)

    def _is_further(self, peak: Bytes | None, than: Bytes | None) -> bool:
        """Whether a peak exceeds the goal, and what there was before."""
        limit = self.settings.memory_bytes
        if limit is None or peak is None or than is None:
            return False
        return peak > limit and peak > than * (1 + LEAST_SAVING)

    def _is_in_time(self, verdict: Verdict) -> bool:
        """Whether steps stay within the goal for latency."""
        goal, reached = self.settings.latency_s, verdict.candidate_s
        return goal is None or (reached is not None and reached <= goal)

    @property
    def _trial_s(self) -> Seconds:
        return min(max(SHORTEST_TRIAL_S, STEPS_TO_DECIDE * self.step_s), LONGEST_TRIAL_S)

    def _best_side(self) -> OpenConfiguration:
        if self._open is None or self._open.configuration != self.best:
            self.close()
            self._open = self.laboratory.open(self.best)
        return self._open

    def _blank(self, choice: LeverChoice, configuration: Configuration) -> LeverOutcome:
        lever, predicted = find_lever(choice.lever), self.predicted.get(choice.lever, Prediction())
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

    # ---- the winners -------------------------------------------------------------------------------------------

    def _prune(self) -> None:
        """Leave out winners that bring nothing beside the others, the earliest first: some levers cancel each other."""
        for choice in list(self.best):
            rest = without_lever(self.best, choice.lever)
            added = self.journal.recall(rest, self.best)
            if choice not in self.best or (added is not None and added.outcome == "kept"):
                continue  # the last one was kept against just that
            if self._spent_s > self.settings.budget_s:
                return
            self.progress(0.99, f"is {choice.label} still needed?")
            self._leave_out(choice, rest)

    def _leave_out(self, choice: LeverChoice, rest: Configuration) -> None:
        best_peak = None if self.settings.memory_bytes is None else self._best_peak_bytes
        recalled = self.journal.recall(self.best, rest)
        outcome = recalled or self._tried(choice, rest)
        if recalled is None:
            self.journal.add(outcome)
        # Without it as fast: the shorter recipe is the better one, unless it is what keeps memory down.
        if outcome.outcome in {"kept", "no gain"} and not self._is_further(outcome.peak_bytes, best_peak):
            said = f"was kept at first; with {label_of(rest)} it brings nothing more"
            if outcome.ratio is not None and outcome.ci_low is not None and outcome.ci_high is not None:
                said += f" (without it {format_ratio(outcome.ratio, outcome.ci_low, outcome.ci_high)})"
            self.outcomes = [
                replace(each, outcome="no gain", reason=said)
                if each.outcome == "kept" and each.label == choice.label
                else each
                for each in self.outcomes
            ]
            self.best = rest
