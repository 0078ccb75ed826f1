"""A compiled function contains code that breaks its graph.

## What it does

Reports each line at which a compiled graph had to end, with torch's reason and what to write instead. Breaks that follow from
another one and go away with it are left out, and so are those inside of torch's own code.

In source text it reports what certainly ends a graph, in functions that the file itself compiles: `print`, `open`, clocks,
logging and warnings; `.item()`, `float(tensor)` and the like unless `capture_scalar_outputs` is set; an `if` or `while` on a
tensor; operators whose result has a size that depends on values, such as `nonzero` and `x[x > 0]`; and `graph_break()` left in.

## Why it costs

Before the break one graph is compiled, behind it another one. Nothing is fused across the break, results that both need are
written to memory and read again, and each step looks for and enters one graph more, with its guards. A break in a loop, or
in a function that cannot be entered in its middle, leaves the whole function uncompiled.

## Example

```python
import torch


@torch.compile
def normalise(x: torch.Tensor) -> torch.Tensor:
    total = x.sum()
    if total > 0:
        x = x / total
    return x
```

## Use instead

Select with torch.where, keep numbers in tensors, and say things to people outside of the compiled function.

```python
import torch


@torch.compile
def normalise(x: torch.Tensor) -> torch.Tensor:
    total = x.sum()
    is_positive = total > 0
    divisor = torch.where(is_positive, total, 1.0)
    return torch.where(is_positive, x / divisor, x)
```

`torch.where` computes both sides, and the backward pass goes through both: a NaN or an infinity in the side that is not taken
makes the gradient NaN. `torch.where(total > 0, x / total, x)` would do so at a total of 0, so the divisor is made safe first.

## Fix safety

Each rewrite says for itself what it may change: keeping a number in a tensor rounds as tensors do, selecting between two
results computes both. Taking out a forgotten `torch._dynamo.graph_break()` may change digits, as more is fused then.

## References

- PyTorch documentation, torch.compile: https://docs.pytorch.org/docs/stable/generated/torch.compile.html
- PyTorch documentation, the programming model of torch.compile:
  https://docs.pytorch.org/docs/main/user_guide/torch_compiler/compile/programming_model.fullgraph_true.html
- PyTorch tutorial, Introduction to torch.compile: https://docs.pytorch.org/tutorials/intermediate/torch_compile_tutorial.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.advice import Cost
from pyrometer.place import Place
from pyrometer.quantity import counted
from pyrometer.rules.compilation.patterns.certain_breaks import certain_breaks
from pyrometer.rules.compilation.patterns.hypothetical import is_hypothetical
from pyrometer.rules.compilation.patterns.spread import one_more_graph
from pyrometer.rules.match import Fix, Matches, match
from pyrometer.rules.rule import Case, Findings, Module, declare
from pyrometer.source.edit import delete_statement

if TYPE_CHECKING:
    from pyrometer.compiler.breaks.record import Break

RULE = declare(code="PYR401", severity="warning", fix_class="semantic")

OTHERWISE = "Do it before or after the compiled function and hand the result in."


@RULE.in_source
def find(module: Module) -> Matches:
    """What certainly breaks, in functions that the file compiles."""
    for graph_break in certain_breaks(module):
        fixes = (
            Fix(
                fix_class="tolerance",
                title="Remove the call",
                edits=[delete_statement(module, module.statement_of(graph_break.node))],
            )
            if graph_break.is_left_in
            else None
        )
        yield match(
            graph_break.node,
            f"{graph_break.what} ends the graph of a compiled function",
            advice=graph_break.advice,
            fix=fixes,
            confidence="high" if graph_break.is_certain else "medium",
        )


@RULE.in_evidence("compiled")
def explain(case: Case) -> Findings:
    """One finding per line at which graphs ended."""
    report = case.compiled
    if report is None:
        return
    would = is_hypothetical(report)
    for number, graph_break in enumerate(report.breaks):
        if graph_break.chained or graph_break.inside_torch:
            continue
        first = graph_break.advice[0] if graph_break.advice else None
        yield RULE.finding(
            message=_message(graph_break, would=would),
            severity="info" if would else "warning",
            where=Place(file=graph_break.file, line=graph_break.line, function=graph_break.function or None),
            evidence={
                "break_id": graph_break.id,
                "compilations": len(graph_break.compile_ids),
                "breaks_on_line": graph_break.sites,
                "lost_ops": graph_break.lost_ops,
                "num_graphs": report.graphs,
                "left_eager": [place.text for place in graph_break.left_eager],
            },
            links=[f"/compiled/breaks/{number}"],
            cost=None if would else _cost(graph_break, case),
            confidence="high",
            advice=OTHERWISE if first is None else first,
            resource=f"break:{graph_break.file}:{graph_break.line}",
        )


def _message(graph_break: Break, *, would: bool) -> str:
    reason = graph_break.reason.strip().partition("\n")[0]
    ends = "torch.compile would end its graph here" if would else "The compiled graph ends here"
    if graph_break.skips_frame:
        ends = (
            f"The function {graph_break.function} {'would be' if would else 'is'} not compiled for this line"
        )
    lost = (
        f", which leaves {counted(graph_break.lost_ops, 'operation')} out of any graph"
        if graph_break.lost_ops
        else ""
    )
    times = f" ({counted(graph_break.sites, 'break')} on this line)" if graph_break.sites > 1 else ""
    return f"{ends}: {reason}{lost}{times}"


def _cost(graph_break: Break, case: Case) -> Cost | None:
    """Of a break behind which a graph follows; what an uncompiled function costs was not measured."""
    if case.compiled is None or graph_break.skips_frame or graph_break.skips_rest:
        return None
    return one_more_graph(graph_break.sites, case, case.compiled)
