"""What rules read: the evidence on one program, with the user's own source files and the limits that the user set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyrometer.advice import Cost
from pyrometer.evidence.evidence import Evidence
from pyrometer.rules.rule import Module, Rule


class Case(Evidence, frozen=True, kw_only=True):
    """Evidence, and what of the program is read beside it; it is never written down.

    Attributes:
        modules: the user's own source files.
        limits: thresholds that the user set, as `"PYR301.min_share": 0.2`.
    """

    modules: tuple[Module, ...] = ()
    limits: Mapping[str, float] = {}

    def has(self, kind: str) -> bool:
        """Whether there is evidence of this kind, of which `source` is one."""
        return bool(self.modules) if kind == "source" else super().has(kind)

    def limit(self, rule: Rule, name: str) -> float:
        """A threshold: what the user set, else the rule's own.

        Raises:
            KeyError: the rule has no limit of that name.
        """
        return self.limits.get(f"{rule.code}.{name}", rule.limit(name).value)

    @property
    def per_step(self) -> str:
        """Follows the figures of a step in sentences; empty where a trace marks no steps, and they are of all of it."""
        return " per step" if self.trace is None or self.trace.steps else ""

    def cost_of(self, share: float, method: str) -> Cost:
        """A share of the step as a cost, with its seconds where the length of a step is known.

        >>> Case(target="train.py").cost_of(0.25, "time in which nothing computes").share
        0.25
        """
        seconds = None if self.step_s is None else share * self.step_s
        return Cost(seconds_per_step=seconds, share=share, method=method)


def case_of(evidence: Evidence, **beside: Any) -> Case:
    """Evidence as a case, with `modules` and `limits`."""
    fields = {name: getattr(evidence, name) for name in Evidence.__struct_fields__}
    return Case(**{**fields, **beside})
