"""torch.compile skips a function, which therefore runs eagerly inside compiled code.

## What it does

Reports each function that yielded no graph, with the reason: a break where nothing can go on behind it (in a loop, in `try`), or
a compiler that failed and was told to be silent about it. Functions that somebody left out on purpose, functions without a tensor
operation, and those that raised to the caller are not reported; nor are those at the recompile limit, which has a rule of its
own.

## Why it costs

Nothing of the function is fused, and its operators are launched one by one as without torch.compile, after the time that was spent
on trying. Functions that it calls are compiled one by one, each with guards of its own.

## Example

```python
@torch.compile
def smooth(x):
    for _ in range(3):
        x = (x + x.roll(1)) / 2
        print(x.mean())
    return x
```

## Use instead

Take what breaks out of the loop or the `try` block, or out of the function.

```python
@torch.compile
def smooth(x):
    for _ in range(3):
        x = (x + x.roll(1)) / 2
    return x


print(smooth(torch.ones(8)).mean())
```

## Fix safety

Semantic: it is the program's own code that has to change. What is printed, and when, changes with it.

## References

- PyTorch documentation, torch.compile: https://docs.pytorch.org/docs/stable/generated/torch.compile.html
- PyTorch documentation, the programming model of torch.compile:
  https://docs.pytorch.org/docs/main/user_guide/torch_compiler/compile/programming_model.fullgraph_true.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.place import Place
from pyrometer.quantity import counted
from pyrometer.rules.compilation.patterns.hypothetical import is_hypothetical
from pyrometer.rules.rule import Case, Findings, declare

if TYPE_CHECKING:
    from pyrometer.compiler.breaks.record import Break, SkippedFrame
    from pyrometer.compiler.report import CompileReport

RULE = declare(code="PYR412", severity="warning", fix_class="semantic")

KINDS = frozenset({"break", "error"})


@RULE.in_evidence("compiled")
def explain(case: Case) -> Findings:
    """One finding per function that was given up without anybody's wish."""
    report = case.compiled
    if report is None:
        return
    would = is_hypothetical(report)
    for number, skip in enumerate(report.skips):
        if skip.kind not in KINDS or skip.lost_ops == 0:
            continue
        cause = _cause(report, skip)
        at = f" at line {cause.line}" if cause is not None else ""
        lost = f" with {counted(skip.lost_ops, 'operation')}" if skip.lost_ops else ""
        yield RULE.finding(
            message=f"{skip.function}{lost} {'would run' if would else 'runs'} eagerly because torch.compile skips it{at}: {skip.reason}",
            severity="info" if would else "warning",
            where=Place(file=skip.file, line=skip.line, function=skip.function),
            evidence={
                "kind": skip.kind,
                "times_tried": skip.count,
                "lost_ops": skip.lost_ops,
                "breaks": skip.num_breaks,
                "called_from": [place.text for place in skip.called_from[-1:]],
            },
            links=[f"/compiled/skips/{number}"],
            confidence="high",
            advice=_advice(skip, cause),
            resource=None if cause is None else f"break:{cause.file}:{cause.line}",
        )


def _cause(report: CompileReport, skip: SkippedFrame) -> Break | None:
    """The break for which the function was given up."""
    of_frame = [
        graph_break
        for graph_break in report.breaks
        if skip.compile_id in graph_break.compile_ids and not graph_break.chained
    ]
    return next(
        (graph_break for graph_break in of_frame if graph_break.skips_frame or graph_break.skips_rest), None
    )


def _advice(skip: SkippedFrame, cause: Break | None) -> str:
    if skip.kind == "error":
        return (
            "The compiler failed and the failure was suppressed: set torch._dynamo.config.suppress_errors = False and see what it "
            "says, or leave the function out with torch.compiler.disable."
        )
    if cause is not None and cause.advice:
        first = cause.advice[0]
        return f"Nothing can go on behind this break: {first.title}. {first.why}"
    return "Take what breaks out of the loop, the try block or the function, so that a graph can end there and another begin."
