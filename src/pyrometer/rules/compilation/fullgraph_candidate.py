"""The program compiles without graph breaks, but `fullgraph=True` does not enforce it.

## What it does

Reports a call of torch.compile without `fullgraph=True` whose program had neither a graph break nor a function that was given up,
where the file has one such call, or the call decorates a function that was seen to compile.

## Why it costs

Nothing yet. A later `print`, a branch on a value or a new release of a library breaks the graph in silence, and the program is
slower without a word. With `fullgraph=True` it is an error at the line that breaks.

## Example

```python
model = torch.compile(model)
```

## Use instead

```python
model = torch.compile(model, fullgraph=True)
```

## Fix safety

Exact while there is no break. An input that takes another way through the program, and breaks there, raises instead of running
in parts.

## References

- PyTorch documentation, fullgraph=True to find graph breaks:
  https://docs.pytorch.org/docs/main/user_guide/torch_compiler/compile/programming_model.fullgraph_true.html
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pyrometer.quantity import counted
from pyrometer.rules.compilation.patterns.compile_calls import CompileCall, compile_calls
from pyrometer.rules.compilation.patterns.hypothetical import is_hypothetical
from pyrometer.rules.joining import module_of
from pyrometer.rules.rule import Case, Findings, declare
from pyrometer.source.edit import replace
from pyrometer.source.rewriting import Rewrite, rewritten, with_keywords

if TYPE_CHECKING:
    from pyrometer.compiler.report import CompileReport

RULE = declare(code="PYR410", severity="info", scope="general", fix_class="exact")

COMPILED = frozenset({"compiled", "empty"})


@RULE.in_evidence("compiled", "source")
def explain(case: Case) -> Findings:
    """The calls of torch.compile that could say so."""
    report = case.compiled
    if report is None or is_hypothetical(report) or not _is_whole(report):
        return
    calls = [call for module in case.modules for call in compile_calls(module)]
    for call in calls:
        if _says(call) or not (len(calls) == 1 or _was_compiled(call, report)):
            continue
        yield RULE.finding(
            message=f"{counted(report.graphs, 'graph')} without a break, but fullgraph=True does not enforce it",
            where=call.place,
            evidence={"graphs": report.graphs, "frames": report.frames, "recompiles": len(report.recompiles)},
            links=["/compiled/graphs"],
            confidence="high",
            advice="Add fullgraph=True: a break that somebody adds later is then an error at its line.",
            rewrite=_rewritten(call),
        )


def _is_whole(report: CompileReport) -> bool:
    """Whether all that was compiled was seen, and none of it broke, failed or was given up."""
    return (
        report.graphs > 0
        and not (report.breaks or report.skips or report.limits or report.incomplete)
        and all(
            compilation.outcome in COMPILED and not compilation.is_resume
            for compilation in report.compilations
        )
    )


def _says(call: CompileCall) -> bool:
    return call.keyword("fullgraph") is not None or call.passes_unknown


def _was_compiled(call: CompileCall, report: CompileReport) -> bool:
    """Whether it decorates a function that is among those compiled."""
    function = call.decorated
    if function is None:
        return False
    first = min(function.lineno, *(decorator.lineno for decorator in function.decorator_list))
    return any(
        compilation.function.rpartition(".")[2] == function.name
        and first <= compilation.line <= (function.end_lineno or function.lineno)
        and module_of(compilation.file, [call.module]) is not None
        for compilation in report.compilations
    )


def _rewritten(call: CompileCall) -> Rewrite | None:
    """The call with the keyword."""
    if isinstance(call.node, ast.Call):
        return rewritten(call.module, with_keywords(call.module, call.node, {"fullgraph": "True"}))
    decorator = f"{call.module.source(call.node)}(fullgraph=True)"
    return rewritten(call.module, [replace(call.module, call.node, decorator)])
