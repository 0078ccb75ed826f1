"""A function hit torch.compile's recompile limit and now silently runs eagerly.

## What it does

Reports each function that reached the limit of compilations, with the guards that failed last, and how many calls were seen to
run eagerly since.

## Why it costs

Every compilation up to the limit was paid for, and from then on calls that fit none of the graphs run eagerly, each after the
guards of all graphs were tried. torch warns once and never again: the program looks compiled and is not.

## Example

```python
step = torch.compile(model, dynamic=False)
for length in lengths:  # more lengths than the limit
    step(torch.randn(1, length, 64))
```

## Use instead

Take away what makes it compile again: pad to a few sizes, let sizes be open, pass numbers as tensors.

```python
step = torch.compile(model)
for length in lengths:
    step(torch.nn.functional.pad(torch.randn(1, length, 64), (0, 0, 0, -length % 128)))
```

## Fix safety

Tolerance where a size is left open, semantic where inputs are padded and the model does not mask. Raising
`torch._dynamo.config.recompile_limit` changes nothing but the number of compilations before the same end.

## References

- PyTorch documentation, recompilation:
  https://docs.pytorch.org/docs/main/user_guide/torch_compiler/compile/programming_model.recompilation.html
- PyTorch documentation, torch.compiler.set_stance:
  https://docs.pytorch.org/docs/stable/generated/torch.compiler.set_stance.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.place import Place
from pyrometer.quantity import counted
from pyrometer.rules.compilation.patterns.hypothetical import is_hypothetical
from pyrometer.rules.compilation.patterns.spread import RESOURCE, once_in_a_run
from pyrometer.rules.rule import Case, Findings, declare

if TYPE_CHECKING:
    from pyrometer.compiler.recompiles.record import LimitReached
    from pyrometer.compiler.report import CompileReport

RULE = declare(
    code="PYR404",
    severity="warning",
    scope="symptom",
    fix_class="tolerance",
    lever="shape_buckets",
)

SIZES = frozenset({"size", "rank", "length"})
OF_SIZES = "Its sizes vary: pad to a few of them and compile each once, or leave dynamic at its default so that one graph holds for all."
OF_VALUES = "Keep what the guard names the same in all calls, pass it as a tensor, or decide outside of the compiled function."


@RULE.in_evidence("compiled")
def explain(case: Case) -> Findings:
    """One finding per function."""
    report = case.compiled
    if report is None:
        return
    would = is_hypothetical(report)
    for number, limit in enumerate(report.limits):
        silent = _silent_calls(report, limit)
        seconds = sum(
            recompile.compile_s or 0.0 for recompile in report.recompiles if _is_of(recompile, limit)
        )
        by_size = bool({cause.kind for cause in limit.causes} & SIZES)
        times = (
            "as often as torch allows"
            if limit.limit is None
            else f"{limit.limit} times, the most that torch allows"
        )
        ran = f": {counted(silent, 'call')} ran eagerly" if silent else ""
        yield RULE.finding(
            message=f"{limit.function} {'would be' if would else 'was'} compiled {times}; calls that fit none of its graphs run "
            f"eagerly in silence{ran}",
            severity="info" if would else "warning",
            where=Place(file=limit.file, line=limit.line, function=limit.function),
            evidence={
                "limit": limit.limit,
                "silent_calls": silent,
                "recompile_s": seconds,
                "failing_guards": [cause.guard for cause in limit.causes],
            },
            links=[f"/compiled/limits/{number}"],
            cost=None if would else once_in_a_run(seconds, case, report),
            lever="shape_buckets" if by_size else None,
            confidence="high",
            advice=OF_SIZES if by_size else OF_VALUES,
            resource=RESOURCE,
        )


def _silent_calls(report: CompileReport, limit_reached: LimitReached) -> int | None:
    """Calls of the function that were seen to run eagerly; `None` where nobody watched."""
    if report.runtime is None:
        return None
    return sum(one.calls for one in report.runtime.silent_eager if _is_of(one, limit_reached))


def _is_of(one: object, limit_reached: LimitReached) -> bool:
    return (getattr(one, "file", ""), getattr(one, "line", 0)) == (limit_reached.file, limit_reached.line)
