"""The search: one lever at a time against the best so far, then the winners against each other, then the whole again from fresh.

Every decision is written down before the next begins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from pyrometer.errors import PyrometerError
from pyrometer.quantity import Seconds, format_ratio, format_seconds
from pyrometer.tuning.levers.choice import Configuration, LeverChoice, label_of
from pyrometer.tuning.levers.configuration import with_lever, without_lever
from pyrometer.tuning.levers.lever import CANNOT_TAKE, VARIED
from pyrometer.tuning.levers.registry import find_lever
from pyrometer.tuning.levers.stages import STAGES, Stage
from pyrometer.tuning.outcome import LeverOutcome, LeverResult, StageReport
from pyrometer.tuning.search.budget import Budget
from pyrometer.tuning.search.combining import expected_over, gains_of
from pyrometer.tuning.search.finishing import leave_out_needless, look_again
from pyrometer.tuning.search.journal import Journal
from pyrometer.tuning.search.ordering import Prediction, in_order
from pyrometer.tuning.search.spread import UNKNOWN, Spread
from pyrometer.tuning.search.weighing import HEAVY_MINUTES, OPEN_SHARE, TYPICAL_S, Weighing
from pyrometer.tuning.trials.gate import Numerics

HOPELESS = 1.5
"""An executor so many times slower than the best is not made up for by another precision under it."""

AT_LEAST = 0.5
"""Of what applying a lever is expected to take, for it to be begun where nothing else is left to be tried."""


def _stage_of(name: str) -> Stage:
    """In which a lever is tried: its own, or the later one of a lever that it needs."""
    lever = find_lever(name)
    return max((lever.stage, *(find_lever(needed).stage for needed in lever.needs)), key=STAGES.index)


def _runs_under(choice: LeverChoice, executor: str) -> bool:
    lever = find_lever(choice.lever)
    return lever.place != "executor" and executor in (lever.executors or {executor})


@dataclass
class Search:
    """The state of a search.

    Attributes:
        best: the best configuration so far.
        outcomes: of everything that was tried, in order.
        waiting: what was not tried yet, the most promising first.
        set_aside: what was faster until an executor that does not run it took its place; others may run it.
        ahead: may try what waits elsewhere, and write the outcomes into the journal.
        spread: what is known of pairs of processes, for the confirmation.
    """

    weighing: Weighing
    journal: Journal
    predicted: dict[str, Prediction]
    progress: Callable[[float, str], None]
    best: Configuration = ()
    outcomes: list[LeverOutcome] = field(default_factory=list)
    waiting: list[LeverChoice] = field(default_factory=list)
    stages: list[StageReport] = field(default_factory=list)
    interrupted: bool = False
    set_aside: Configuration = ()
    ahead: Callable[[Search, Sequence[LeverChoice]], None] | None = None
    spread: Spread = UNKNOWN
    _executors: dict[str, LeverOutcome] = field(default_factory=dict)
    _looked_at: set[str] = field(default_factory=set)

    @property
    def budget(self) -> Budget:
        """The time for all of it."""
        return self.weighing.budget

    # ---- the loop ----------------------------------------------------------------------------------------------

    def run(self, choices: dict[str, list[LeverChoice]]) -> None:
        """Try everything; Ctrl-C ends it and keeps what was decided."""
        try:
            if self.weighing.settings.stages:
                for stage in self.weighing.settings.stages:
                    self._run_stage(stage, choices)
            else:
                self._line_up(choices)
                self._try_all()
                self._finish()
        except KeyboardInterrupt:
            self.interrupted = True

    def go_on(self) -> bool:
        """Use the time that the confirmation gave back; returns whether another configuration is the best now."""
        before = self.best
        self.weighing.reserve(self.best)
        try:
            if not self.interrupted and not self.weighing.settings.stages:
                self._try_all()
                self._finish()
        except KeyboardInterrupt:
            self.interrupted = True
        return bool(self.best) and self.best != before

    def _finish(self) -> None:
        leave_out_needless(self)
        if look_again(self):
            leave_out_needless(self)
        self._try_all(AT_LEAST)

    def _run_stage(self, stage: Stage, choices: dict[str, list[LeverChoice]]) -> None:
        begin, before, num_before = self.budget.now(), self.best, len(self.outcomes)
        self._line_up({name: listed for name, listed in choices.items() if _stage_of(name) == stage})
        self._try_all(AT_LEAST)
        numerics, doubt = self._validated() if self.best != before else (None, None)
        if doubt is not None:
            outcome: LeverResult = "failed" if numerics is None else "wrong numbers"
            for number in range(num_before, len(self.outcomes)):
                if self.outcomes[number].outcome == "kept":
                    reason = f"at the end of the stage {stage}: {doubt}"
                    self.outcomes[number] = replace(self.outcomes[number], outcome=outcome, reason=reason)
            self.hold(before)
        kept = [choice.lever for choice in self.best if choice not in before]
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
        self.tell_untried()

    def _validated(self) -> tuple[Numerics | None, str | None]:
        """The numerics of the best configuration, and why it cannot stay.

        In a fresh process, since the one that is open has trained on while it was timed.
        """
        laboratory = self.weighing.laboratory
        try:
            with laboratory.open(self.best) as side:
                numerics = laboratory.check(side)
        except PyrometerError as error:
            return None, str(error)
        return numerics, numerics.refused

    def _line_up(self, choices: dict[str, list[LeverChoice]]) -> None:
        applying_s = sum(
            find_lever(name).minutes * TYPICAL_S * len(listed) for name, listed in choices.items()
        )
        each_s = self.weighing.costs.opening_s + self.weighing.trial_s
        hurried = applying_s + sum(map(len, choices.values())) * each_s > self.budget.trials_left_s
        self.waiting += in_order(choices, self.predicted, hurried=hurried)

    def _try_all(self, enough: float = 1.0) -> None:
        """Try what waits, as long as there is time for it.

        What would be cut short waits for the end: it must not take the time of those that fit. So does what is slower than the
        best by now even where it brings the most that is expected of it.

        Args:
            enough: share of what applying a lever is expected to take, which there has to be time for.
        """
        while self.weighing.has_time:
            if self.ahead is not None:
                self.ahead(self, self.waiting)
            fitting = [each for each in self.waiting if self._fits(each, enough)]
            choice = next(filter(self._may_win, fitting), next(iter(fitting), None))
            if choice is None and self.waiting and not self.best:
                choice = self.waiting[0]  # nothing has to be confirmed, which that would take the time of
            if choice is None:
                return
            self.progress(self.budget.share, f"{choice.label}; best so far {label_of(self.best)}")
            outcome = self.attempt(choice)
            self.waiting.remove(choice)
            if outcome is not None:
                self.outcomes.append(outcome)

    def _fits(self, choice: LeverChoice, enough: float) -> bool:
        """Whether there is time to apply a lever."""
        return enough * self._applying_s(choice) < self.weighing.open_limit_s(self._open_share)

    def _may_win(self, choice: LeverChoice) -> bool:
        """Whether a lever may be faster than the best, by what is expected of both."""
        expected = self.expected(choice, self.configuration_of(choice))
        return expected.low is None or expected.low < 1

    def _applying_s(self, choice: LeverChoice) -> Seconds:
        configuration = self.configuration_of(choice)
        stays = any(
            each in configuration and find_lever(each.lever).minutes >= HEAVY_MINUTES for each in self.best
        )
        return self.weighing.applying_s(choice, self.best if stays else ())

    @property
    def _open_share(self) -> float:
        return OPEN_SHARE if len(self.waiting) > 1 else 1.0

    def tell_untried(self) -> None:
        """Add the levers of which nothing was tried to the outcomes, with the reason."""
        known = {each.name for each in self.outcomes}
        for left in self.waiting:
            if left.lever not in known:
                known.add(left.lever)
                blank = self.blank(left, self.configuration_of(left))
                self.outcomes.append(replace(blank, reason=self._why_untried(left)))
        self.waiting.clear()

    def _why_untried(self, choice: LeverChoice) -> str:
        if self.interrupted:
            return "the search was interrupted"
        total, left_s = format_seconds(self.budget.total_s), max(self.budget.trials_left_s, 0.0)
        reason = f"of the budget of {total} {format_seconds(left_s)} were left for trials; "
        if self.weighing.has_time:
            return reason + f"applying it takes about {format_seconds(self._applying_s(choice))}"
        return reason + f"starting a process takes {format_seconds(self.weighing.costs.opening_s)}"

    # ---- one lever ---------------------------------------------------------------------------------------------

    def attempt(self, choice: LeverChoice) -> LeverOutcome | None:
        """Try a lever on top of the best configuration; `None` where that is what runs already."""
        configuration = self.configuration_of(choice)
        if configuration == self.best:
            return None
        settled = self.settled(choice, configuration)
        if settled is not None:
            return settled
        outcome = self.judged(choice, configuration)
        under = self._under(choice)
        if (
            outcome.outcome in {"slower", "no gain", "undecided"}
            and under is not None
            and self.weighing.has_time
        ):
            together = self.judged(choice, under)
            if together.ratio is not None and together.ratio < (outcome.ratio or math.inf):
                outcome = together
        self._take(outcome)
        return outcome

    def look_at(self, undecided: LeverOutcome) -> LeverOutcome | None:
        """Compare what is undecided for longer, once; `None` where there is nothing to be compared any more."""
        choice = LeverChoice(lever=undecided.name, parameters=undecided.parameters)
        anew = tuple(undecided.against) != self.best
        configuration = self.configuration_of(choice) if anew else tuple(undecided.configuration)
        is_settled = configuration == self.best or self.settled(choice, configuration) is not None
        if choice.label in self._looked_at or is_settled:
            return None
        self._looked_at.add(choice.label)
        outcome = self.judged(choice, configuration, longer=True)
        if outcome.outcome == "untried":
            return None
        self._take(outcome)
        return outcome

    def _take(self, outcome: LeverOutcome) -> None:
        """Keep the fastest way to use each executor that computed the right numbers, also where it was not kept."""
        is_kept = outcome.outcome == "kept"
        is_executor = "executor" in find_lever(outcome.name).excludes and outcome.ratio is not None
        if is_executor and (is_kept or outcome.name not in self._executors):
            self._executors[outcome.name] = outcome
        if is_kept:
            if is_executor:
                gone = [each for each in self.best if each not in outcome.configuration]
                self.set_aside += tuple(each for each in gone if each.lever not in self._executors)
            self.hold(tuple(outcome.configuration))

    def hold(self, configuration: Configuration) -> None:
        """Go on from another configuration as the best."""
        self.best = configuration
        self.weighing.reserve(configuration)

    def settled(self, choice: LeverChoice, configuration: Configuration) -> LeverOutcome | None:
        """What is known without a trial."""
        reason = self._known_reason(choice, configuration)
        if reason is None:
            return None
        return replace(self.blank(choice, configuration), outcome="not applicable", reason=reason)

    def _known_reason(self, choice: LeverChoice, configuration: Configuration) -> str | None:
        """Why a lever cannot help; `None` where that is not known."""
        lever = find_lever(choice.lever)
        is_structural = lever.place in {"structure", "layout"} and lever.executors is not None
        if is_structural and self._running not in (lever.executors or ()):
            return f"does nothing under {self._running}, which is faster"
        missing = lever.needs - {each.lever for each in configuration}
        if missing:
            needed = " and ".join(sorted(missing))
            return f"has no effect without {needed}, which was not tried before or does not run here"
        if self._ratio_of_executor(choice) > VARIED:
            known = self._executors[choice.lever]
            slower = format_ratio(known.ratio or 1, known.ci_low or 0, known.ci_high or math.inf)
            return f"{known.label} was {slower}"
        refusals = tuple(f"{name} {CANNOT_TAKE}" for name in lever.converters)
        failed = (each.reason for each in self.outcomes if each.outcome == "failed")
        return next((reason for reason in failed if reason.startswith(refusals)), None)

    def _ratio_of_executor(self, choice: LeverChoice) -> float:
        """Of what was best then and an executor, with other parameters than these; 0 where it was not timed."""
        known = self._executors.get(choice.lever)
        return known.ratio or 0.0 if known is not None else 0.0

    def judged(
        self, choice: LeverChoice, configuration: Configuration, *, longer: bool = False
    ) -> LeverOutcome:
        """What was decided before, or what is decided now and written down; with `longer` also where it was undecided before."""
        recalled = self.journal.recall(self.best, configuration)
        if recalled is not None and not (longer and recalled.outcome == "undecided"):
            return recalled
        blank = self.blank(choice, configuration)
        outcome = self.weighing.weigh(blank, longer=longer, share=self._open_share)
        if outcome.outcome != "untried":
            self.journal.add(outcome)
        return outcome

    def configuration_of(self, choice: LeverChoice) -> Configuration:
        """The best configuration with a lever; under another executor where the lever does not work under the one that is best."""
        lever, running = find_lever(choice.lever), self._running
        if lever.place == "executor":
            # It competes with what works only under others, such as another precision, and brings back what works under it.
            kept = [each for each in (*self.set_aside, *self.best) if _runs_under(each, choice.lever)]
            base: Configuration = ()
            for each in kept:
                base = with_lever(base, each)
            return with_lever(base, choice)
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

    def blank(self, choice: LeverChoice, configuration: Configuration) -> LeverOutcome:
        """The outcome of a lever before anything is known of it."""
        lever, expected = find_lever(choice.lever), self.expected(choice, configuration)
        return LeverOutcome(
            name=choice.lever,
            parameters=choice.parameters,
            outcome="untried",
            stage=lever.stage,
            fix_class=lever.fix_class,
            against=list(self.best),
            configuration=list(configuration),
            predicted_low=expected.low,
            predicted_high=expected.high,
            learned=expected.learned,
            rules=list(expected.rules),
        )

    def expected(self, choice: LeverChoice, configuration: Configuration) -> Prediction:
        """What is predicted of a lever, over the best so far: some of its gain was brought by others, or goes with what it replaces."""
        predicted = self.predicted.get(choice.lever, Prediction())
        known = {name: each.ratio for name, each in self._executors.items() if each.ratio is not None}
        aside = {each.lever for each in self.set_aside}
        known |= {each.name: each.ratio for each in self.outcomes if each.name in aside and each.ratio}
        return expected_over(
            predicted, choice.lever, known | gains_of(self.outcomes), self.best, configuration
        )
