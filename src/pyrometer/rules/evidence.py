"""What rules read: everything that is known of one program, each part null where it was not observed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyrometer.advice import Cost
from pyrometer.quantity import Seconds
from pyrometer.rules.rule import Kind, Rule

if TYPE_CHECKING:
    from pyrometer.bench.measurement import Measurement
    from pyrometer.compiler.report import CompileReport
    from pyrometer.hardware.environment import Environment
    from pyrometer.loading.report import LoaderReport
    from pyrometer.memory.profile import MemoryProfile
    from pyrometer.numerics.report import NumericsReport
    from pyrometer.source.module import Module
    from pyrometer.trace.capture.record import Capture
    from pyrometer.trace.jobs.job import Job
    from pyrometer.trace.reporting.rank_report import RankReport
    from pyrometer.trace.reporting.verdict import TraceVerdict
    from pyrometer.workload.program.record import Program


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Records about one program.

    Attributes:
        target: as it was typed.
        trace: of the rank that is looked at.
        ranks: of all ranks, where there are several; `trace` is one of them.
        modules: the user's own source files.
        limits: thresholds that the user set, as `"PYR301.min_share": 0.2`.
    """

    target: str
    measurement: Measurement | None = None
    environment: Environment | None = None
    trace: RankReport | None = None
    trace_verdict: TraceVerdict | None = None
    capture: Capture | None = None
    ranks: tuple[RankReport, ...] = ()
    job: Job | None = None
    compiled: CompileReport | None = None
    memory: MemoryProfile | None = None
    loading: LoaderReport | None = None
    program: Program | None = None
    numerics: NumericsReport | None = None
    modules: tuple[Module, ...] = ()
    limits: Mapping[str, float] = field(default_factory=dict)

    def has(self, kind: Kind) -> bool:
        """Whether there is evidence of this kind."""
        return bool(self.modules) if kind == "source" else getattr(self, kind) is not None

    def limit(self, rule: Rule, name: str) -> float:
        """A threshold: what the user set, else the rule's own.

        Raises:
            KeyError: the rule has no limit of that name.
        """
        return self.limits.get(f"{rule.code}.{name}", rule.limit(name).value)

    @property
    def step_s(self) -> Seconds | None:
        """Seconds of one step: as measured, else the mean of the traced steps."""
        if self.measurement is not None and self.measurement.complete and self.measurement.median_s > 0:
            return self.measurement.median_s
        if self.trace is None or not self.trace.steps:
            return None
        steps = self.trace.steps
        return sum(step.end_ns - step.start_ns for step in steps) * 1e-9 / len(steps)

    def cost_of(self, share: float, method: str) -> Cost:
        """A share of the step as a cost, with its seconds where the length of a step is known.

        >>> Evidence(target="train.py").cost_of(0.25, "time in which nothing computes").share
        0.25
        """
        seconds = None if self.step_s is None else share * self.step_s
        return Cost(seconds_per_step=seconds, share=share, method=method)

    @property
    def num_traced_steps(self) -> int:
        """Steps in the trace, at least one."""
        return max(len(self.trace.steps), 1) if self.trace is not None else 1
