"""Compiling takes longer than it saves over the run.

## What it does

Compares the run with and without torch.compile: the first step with its compilation and all the compiled steps after it, against
as many eager ones. Reports a program that is not repaid within the length of the run, or whose compiled steps are not faster
than eager ones at all. It needs both to have been timed in turn; while their order is not decided, it is silent.

## Why it costs

Tracing, code generation and the compilers of kernels take seconds to minutes, once per process and once more for each
recompilation. A short job, a test, a script that is started often, or a model that is one large matrix product may never get
that back.

## Example

```python
model = torch.compile(torch.nn.Linear(4096, 4096))
for batch in batches[:100]:
    model(batch)
```

## Use instead

Run short jobs eagerly, compile only what repeats (one block for all layers), or bring compiled code along.

```python
model = torch.nn.Linear(4096, 4096)
for batch in batches[:100]:
    model(batch)
```

## Fix safety

Tolerance: eager operators round in another order than fused ones.

## References

- PyTorch recipe, compile time caching: https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_tutorial.html
- PyTorch recipe, regional compilation: https://docs.pytorch.org/tutorials/recipes/regional_compilation.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyrometer.advice import Cost, Gain
from pyrometer.quantity import Seconds, counted, format_seconds, significant
from pyrometer.rules.compilation.patterns.compile_calls import compiled_at
from pyrometer.rules.compilation.patterns.hypothetical import is_hypothetical
from pyrometer.rules.compilation.patterns.spread import RESOURCE
from pyrometer.rules.rule import Case, Findings, Limit, declare

if TYPE_CHECKING:
    from pyrometer.compiler.report import CompileReport

RULE = declare(
    code="PYR405",
    severity="warning",
    scope="symptom",
    fix_class="tolerance",
    lever="compile",
    limits=(Limit("min_share", 0.02, "less of the run's time than comparisons of two runs can tell apart"),),
)


class Balance(NamedTuple):
    """A run of some steps, compiled and eager."""

    steps: int
    first_call_s: Seconds
    steady_s: Seconds
    ratio: float
    """Compiled over eager step."""
    ratio_low: float
    ratio_high: float

    @property
    def compiled_s(self) -> Seconds:
        """The whole run, compiled."""
        return self.first_call_s + (self.steps - 1) * self.steady_s

    def eager_over_compiled(self, ratio: float) -> float:
        """The eager run over the compiled one, if compiled steps take `ratio` of eager ones."""
        return self.steps * self.steady_s / ratio / self.compiled_s


@RULE.in_evidence("compiled")
def explain(case: Case) -> Findings:
    """One finding for the run, where it loses."""
    report = case.compiled
    balance = None if report is None or is_hypothetical(report) else _balance(report)
    if report is None or balance is None:
        return
    lost = 1 - balance.eager_over_compiled(balance.ratio)
    if lost < case.limit(RULE, "min_share"):
        return
    ends = sorted(balance.eager_over_compiled(each) for each in (balance.ratio_low, balance.ratio_high))
    repaid = report.cost.break_even_steps
    yield RULE.finding(
        message=_message(report, balance),
        where=compiled_at(case),
        evidence={
            "break_even_steps": repaid,
            "run_steps": balance.steps,
            "first_call_s": balance.first_call_s,
            "compile_s": report.cost.compile_s,
            "compiled_step_s": balance.steady_s,
            "eager_step_s": report.cost.eager_steady_s,
            "compiled_over_eager": balance.ratio,
        },
        links=["/compiled/cost"],
        cost=Cost(
            seconds_per_step=lost * balance.compiled_s / balance.steps,
            share=lost,
            method=f"the compiled run of {counted(balance.steps, 'step')} less the eager one, both from steps timed in turn",
        ),
        gain=Gain(ratio_low=ends[0], ratio_high=ends[1], method="measured"),
        confidence="medium" if repaid is not None else "high",
        advice=_advice(report, balance),
        resource=RESOURCE,
    )


def _balance(report: CompileReport) -> Balance | None:
    """What is known of the run; `None` unless compiled and eager steps were told apart."""
    cost, runtime = report.cost, report.runtime
    if runtime is None or cost.first_call_s is None or cost.steady_s is None or not cost.ratio:
        return None
    if cost.outcome not in {"faster", "slower", "same"}:
        return None
    low = cost.ci_low or cost.ratio
    high = cost.ci_high or cost.ratio
    return Balance(runtime.run_steps, cost.first_call_s, cost.steady_s, cost.ratio, low, high)


def _message(report: CompileReport, balance: Balance) -> str:
    spent = format_seconds(report.cost.compile_s)
    longer = significant(1 / balance.eager_over_compiled(balance.ratio))
    run = f"with the {spent} of compiling, a run of {counted(balance.steps, 'step')} takes {longer} times as long"
    if report.cost.outcome == "slower":
        return f"Compiled steps take {significant(balance.ratio)} times as long as eager ones; {run}"
    if report.cost.outcome == "same":
        return f"Compiled steps are no faster than eager ones; {run}"
    repaid = report.cost.break_even_steps
    when = "never" if repaid is None else f"after {counted(repaid, 'step')}"
    return f"Compiling is repaid {when}; {run}"


def _advice(report: CompileReport, balance: Balance) -> str:
    if report.cost.outcome in {"slower", "same"}:
        return (
            "Run it eagerly: torch.compile brings nothing here. Look at graph breaks first, if there are any."
        )
    levers = [lever.title for lever in report.levers if lever.lever in {"compile_blocks", "preload_cache"}]
    others = f"; or {' or '.join(levers)}" if levers else ""
    return f"Run eagerly unless the run is longer than {counted(report.cost.break_even_steps or balance.steps, 'step')}{others}."
