"""The course of planning for models that run eagerly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import numpy as np
from msgspec.structs import replace

from pyrometer.bench.clock import Clock
from pyrometer.bench.comparison.compare import compare
from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.errors import InputError, UserProgramError
from pyrometer.quantity import Bytes, Seconds, format_bytes, format_percent
from pyrometer.tuning.checkpointing.applying import CheckpointedTraining
from pyrometer.tuning.checkpointing.building import OptionCost, step_model
from pyrometer.tuning.checkpointing.candidates import blocks_of, choose_candidates, reason_against
from pyrometer.tuning.checkpointing.choosing import Wish, choose, every_k_choices, switching_order
from pyrometer.tuning.checkpointing.costs import MeasuredCosts, measure_costs, undisturbed, written_inside
from pyrometer.tuning.checkpointing.model import StepModel
from pyrometer.tuning.checkpointing.observing import observe_step
from pyrometer.tuning.checkpointing.record import (
    CheckpointPlan,
    ExcludedModule,
    GradientMatch,
    ModuleCost,
    PlanPoint,
    StepFigures,
)
from pyrometer.tuning.checkpointing.sentence import plan_sentence
from pyrometer.tuning.checkpointing.solve import Choice, frontier, lowest, non_dominated
from pyrometer.tuning.checkpointing.verify import match_gradients, measured_peak
from pyrometer.workload.changes.policies import Policy
from pyrometer.workload.training import Training

COSTS_SHARE = 0.4
ATTEMPTS = 4
NOTABLE_MISS = 0.02
NO_PARTS = "the model has no parts that keep anything for the backward pass; write it as modules"


class Planner:
    """Measures a step, chooses, and runs the choice; see `plan_checkpoints` for the arguments."""

    def __init__(
        self, work: Training, wish: Wish, *, budget_s: Seconds, seed: int = 0, clock: Clock | None = None
    ) -> None:
        self.work = work
        self.wish = wish
        self.notes: list[str] = []
        self._budget_s = budget_s
        self._seed = seed
        self._clock = clock

    def measure(self, granularity: str | Sequence[str], policies: Sequence[Policy]) -> None:
        """Record a step, and time the recomputation of every candidate.

        Raises:
            InputError: nothing can be computed again.
        """
        model = self.work.parts.model
        self.trace = observe_step(self.work)
        self.notes += self.trace.notes
        self.peak_bytes = measured_peak(self.work)
        candidates, self.excluded = choose_candidates(model, self.trace, granularity)
        self.blocks = [path for path in blocks_of(model, self.trace) if not reason_against(self.trace, path)]
        order = list(dict.fromkeys(call.module for call in self.trace.calls))
        # Every k-th block is to be among the choices, so that no plan is worse.
        self.candidates = (
            sorted({*candidates, *self.blocks}, key=order.index) if granularity == "auto" else candidates
        )
        if not self.candidates:
            raise InputError(
                "checkpointing: no module can be computed again: "
                + ("; ".join(f"{module.module} {module.why}" for module in self.excluded[:3]) or NO_PARTS)
            )
        self.costs = measure_costs(
            self.work,
            self.trace,
            self.candidates,
            policies,
            budget_s=COSTS_SHARE * self._budget_s,
            clock=self._clock,
        )
        self.step_s = undisturbed(self.costs.step_s)
        self.excluded += [
            ExcludedModule(module=path, why=why) for (path, _), why in self.costs.failed.items()
        ]
        self._model(self.costs.options())

    def _model(self, options: list[OptionCost]) -> None:
        self.options = options
        self.model: StepModel = step_model(self.trace, options)
        number = {
            path: index for index, path in enumerate(dict.fromkeys(option.module for option in options))
        }
        self.block_numbers = [number[path] for path in self.blocks if path in number]

    def plan(self) -> CheckpointPlan:
        """Choose, run the choice, and choose again when running it says otherwise."""
        limit_s = self.wish.limit_s(self.step_s)
        # The measured peak is of two steps, of which the recorded one need not be the larger.
        beyond = max(self.peak_bytes - self.model.peak(), 0)
        for _ in range(ATTEMPTS):
            limit = None if self.wish.budget_bytes is None else self.wish.budget_bytes - beyond
            choice = choose(self.model, self.wish, self.block_numbers, limit, limit_s)
            planned = self.planned(choice)
            if not choice.options:
                return self._record(choice, beyond, self.peak_bytes, None)
            match = self._match(planned, choice)
            if match is None:
                continue
            peak = measured_peak(planned)
            missed = peak - (choice.peak_bytes + beyond)
            over = self.wish.budget_bytes is not None and peak > self.wish.budget_bytes
            if over and missed > 0 and limit is not None and choice.peak_bytes <= limit:
                beyond += missed
                continue
            return self._record(choice, beyond, peak, match)
        return self._record(choice, beyond, measured_peak(planned), match_gradients(self.work, planned))

    def planned(self, choice: Choice) -> CheckpointedTraining:
        """The step with a choice in force."""
        policies = self._policies(choice)
        return CheckpointedTraining(self.work, policies, self._written(policies))

    def _policies(self, choice: Choice) -> dict[str, Policy]:
        chosen = [self.options[index] for index in choice.options]
        order = {path: place for place, path in enumerate(self.candidates)}
        return {cost.module: cost.policy for cost in sorted(chosen, key=lambda cost: order[cost.module])}

    def _written(self, policies: Iterable[str]) -> dict[str, list[str]]:
        found = {path: written_inside(self.trace, path) for path in policies}
        return {path: names for path, names in found.items() if names}

    def _match(self, planned: CheckpointedTraining, choice: Choice) -> GradientMatch | None:
        """Whether gradients are equal; otherwise the modules to blame are excluded, and there is no answer."""
        try:
            match = match_gradients(self.work, planned, seed=self._seed)
        except UserProgramError:
            match = None
        if match is not None and match.equal:
            return match
        guilty = [path for path, policy in self._policies(choice).items() if not self._alone(path, policy)]
        why = "gives other gradients when computed again: its forward does not do the same twice"
        if not guilty and match is not None:
            return match
        if not guilty:
            guilty, why = list(self._policies(choice)), "fails when computed again together with others"
        for path in guilty:
            self.excluded.append(ExcludedModule(module=path, why=why))
        self._model([option for option in self.options if option.module not in guilty])
        return None

    def _alone(self, path: str, policy: Policy) -> bool:
        policies = {path: policy}
        try:
            planned = CheckpointedTraining(self.work, policies, self._written(policies))
            return match_gradients(self.work, planned, seed=self._seed).equal
        except UserProgramError:
            return False

    def _record(
        self, choice: Choice, beyond: Bytes, peak_bytes: Bytes, match: GradientMatch | None
    ) -> CheckpointPlan:
        policies = self._policies(choice)
        verdict: Verdict | None = None
        interval: list[Seconds] = []
        if policies:
            remaining_s = (1 - COSTS_SHARE) * self._budget_s
            verdict = compare(self.work, self.planned(choice), budget_s=remaining_s, seed=self._seed)
            ends = (verdict.ci_low, verdict.ci_high)
            if verdict.baseline_s is not None:
                interval = [verdict.baseline_s * end for end in ends if end is not None]
        least = lowest(self.model)
        predicted = choice.peak_bytes + beyond
        self._note_misses(predicted, peak_bytes)
        low, high = np.quantile(self.costs.step_s, [0.25, 0.75])
        budget = self.wish.budget_bytes
        plan = CheckpointPlan(
            name=self.work.name,
            strategy=self.wish.strategy,
            sentence="",
            modules=list(policies),
            policy=cast("dict[str, str]", policies),
            written=self._written(dict.fromkeys([*policies, *self.blocks])),
            budget_bytes=budget,
            max_slowdown=self.wish.max_slowdown,
            fits=None if budget is None else peak_bytes <= budget,
            least_peak_bytes=least.peak_bytes + beyond,
            baseline=StepFigures(
                peak_bytes=self.peak_bytes,
                predicted_peak_bytes=self.model.peak() + beyond,
                step_s=verdict.baseline_s if verdict is not None else self.step_s,
                step_s_ci=[] if verdict is not None else [float(low), float(high)],
            ),
            planned=StepFigures(
                peak_bytes=peak_bytes,
                predicted_peak_bytes=predicted,
                step_s=verdict.candidate_s if verdict is not None else self.step_s,
                step_s_ci=interval if len(interval) == 2 else [],
            ),
            recompute_s=choice.seconds,
            proven=choice.proven and self.wish.strategy == "optimal",
            verdict=verdict,
            equal=match,
            frontier=[self._point(choice, beyond) for choice in non_dominated(frontier(self.model))],
            every_k=[
                self._point(one, beyond, k) for k, one in every_k_choices(self.model, self.block_numbers)
            ],
            order=[self.options[index].module for index in switching_order(self.model, self.block_numbers)],
            costs=self._module_costs(),
            excluded=self.excluded,
            notes=self.notes,
        )
        return replace(plan, sentence=plan_sentence(plan))

    def _note_misses(self, predicted: Bytes, measured: Bytes) -> None:
        miss = abs(predicted / measured - 1) if measured else 0.0
        if miss > NOTABLE_MISS:
            self.notes.append(
                f"the model said {format_bytes(predicted)} for the plan and {format_bytes(measured)} were measured, "
                f"{format_percent(miss, 2)} apart: steps differ from each other, or recomputation differs from the forward"
            )
        if self.trace.written:
            self.notes.append(
                "recomputed modules with running statistics write to copies of them, so that they are updated once"
            )

    def _point(self, choice: Choice, beyond: Bytes, k: int | None = None) -> PlanPoint:
        policies = self._policies(choice)
        return PlanPoint(
            modules=list(policies),
            policies=cast("dict[str, str]", policies),
            peak_bytes=choice.peak_bytes + beyond,
            recompute_s=choice.seconds,
            step_s=self.step_s + choice.seconds,
            k=k,
        )

    def _module_costs(self) -> list[ModuleCost]:
        costs: MeasuredCosts = self.costs
        module_costs = []
        for cost, option in zip(self.options, self.model.options, strict=True):
            calls = self.trace.calls_of(cost.module)
            inputs = {storage for call in calls for storage in self.trace.calls[call].inputs}
            low, high = costs.spread_s(cost.module, cost.policy)
            module_costs.append(
                ModuleCost(
                    module=cost.module,
                    policy=cost.policy,
                    saved_bytes=self.trace.saved_bytes(cost.module),
                    input_bytes=sum(self.trace.storages[storage].nbytes for storage in inputs),
                    burst_bytes=max((burst.nbytes for burst in option.bursts), default=0),
                    forward_s=undisturbed(costs.times[cost.module].forward),
                    cost_s=cost.seconds,
                    cost_s_quartiles=[low, high],
                    num_calls=len(calls),
                )
            )
        return module_costs
