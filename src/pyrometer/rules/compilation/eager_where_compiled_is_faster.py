"""The program runs eagerly, and compiled it was measured to be faster.

## What it does

Reports a program that compiles nothing by itself, where torch.compile was tried on it: compiled and eager steps ran in turn, the
compiled ones were faster for certain, computed the same, and repay their compilation within the length of the run. Where modes
were evaluated, the best one is named.

## Why it costs

Eager code launches one kernel per operator, and writes every intermediate result to memory. A compiler fuses chains of operators
into one loop that keeps them in registers or caches, and spares the host the work of launching them.

## Example

```python
model = model.eval()
with torch.inference_mode():
    model(x)
```

## Use instead

```python
model = torch.compile(model.eval())
with torch.inference_mode():
    model(x)
```

## Fix safety

Tolerance: fused code rounds in another order; how far outputs were from eager ones stands in the report.

## References

- PyTorch tutorial, Introduction to torch.compile: https://docs.pytorch.org/tutorials/intermediate/torch_compile_tutorial.html
- PyTorch documentation, torch.compile: https://docs.pytorch.org/docs/stable/generated/torch.compile.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyrometer.advice import Gain
from pyrometer.quantity import counted, format_ratio
from pyrometer.rules.compilation.patterns.compile_calls import compiled_at
from pyrometer.rules.compilation.patterns.hypothetical import is_hypothetical
from pyrometer.rules.rule import Case, Findings, Limit, declare

if TYPE_CHECKING:
    from pyrometer.compiler.report import CompileReport

RULE = declare(
    code="PYR414",
    severity="info",
    scope="general",
    fix_class="tolerance",
    lever="compile",
    limits=(Limit("min_gain", 0.05, "less is not worth another way to run the program"),),
)

DEFAULT = "default"


class Faster(NamedTuple):
    """What was measured of the better way to run the program."""

    mode: str
    ratio: float
    low: float
    high: float
    break_even_steps: int | None
    max_rel: float | None
    link: str


@RULE.in_evidence("compiled")
def explain(case: Case) -> Findings:
    """One finding, where compiling was shown to bring something."""
    report = case.compiled
    found = None if report is None or not is_hypothetical(report) else _evaluated(report) or _tried(report)
    if report is None or found is None or found.high > 1 - case.limit(RULE, "min_gain"):
        return
    steps = report.runtime.run_steps if report.runtime is not None else None
    if found.break_even_steps is None or (steps is not None and found.break_even_steps > steps):
        return
    mode = "" if found.mode == DEFAULT else f" in mode {found.mode}"
    yield RULE.finding(
        message=f"Compiled{mode} the step is {format_ratio(found.ratio, found.low, found.high)}; compiling is repaid after "
        f"{counted(found.break_even_steps, 'step')}",
        where=compiled_at(case),
        evidence={
            "compiled_over_eager": found.ratio,
            "break_even_steps": found.break_even_steps,
            "compile_s": report.cost.compile_s,
            "max_rel": found.max_rel,
        },
        links=[found.link],
        gain=Gain(ratio_low=found.low, ratio_high=found.high, method="measured"),
        confidence="high",
        advice="Pass the model to torch.compile once, before the first step, and warm it up with each shape.",
        sketch="model = torch.compile(model)"
        if not mode
        else f'model = torch.compile(model, mode="{found.mode}")',
        resource="eager",
    )


def _evaluated(report: CompileReport) -> Faster | None:
    """The best of the modes that were evaluated."""
    if report.evaluation is None:
        return None
    for number, mode in enumerate(report.evaluation.modes):
        if mode.mode == report.evaluation.best and mode.outcome == "faster" and mode.ratio is not None:
            low, high = mode.ci_low or mode.ratio, mode.ci_high or mode.ratio
            link = f"/compiled/evaluation/modes/{number}"
            return Faster(mode.mode, mode.ratio, low, high, mode.break_even_steps, mode.max_rel, link)
    return None


def _tried(report: CompileReport) -> Faster | None:
    """The default mode against eager, as the inspection compared them."""
    cost, error = report.cost, report.error
    if cost.outcome != "faster" or cost.ratio is None or (error is not None and not error.within_tolerance):
        return None
    low, high = cost.ci_low or cost.ratio, cost.ci_high or cost.ratio
    max_rel = error.max_rel if error is not None else None
    return Faster(DEFAULT, cost.ratio, low, high, cost.break_even_steps, max_rel, "/compiled/cost")
