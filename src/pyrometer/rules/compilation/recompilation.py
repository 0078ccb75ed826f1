"""A compiled function recompiles because an input changed.

## What it does

Reports each function that was compiled more than once, with the guard that failed, the input that changed and the values that
it had. Changes of dtype, device, layout or gradient mode, and integers that a module counts, are told by rules of their own.
A change between `train()` and `eval()` is two graphs by design and not reported.

## Why it costs

torch.compile compiles for the sizes and values that it sees. A call that fits none of its graphs waits until another one is
compiled: in the middle of the run, at each new value, until torch opens the size or gives the function up.

## Example

```python
step = torch.compile(model)
for batch in loader:
    step(batch)  # the last batch of an epoch is smaller
```

## Use instead

Say which dimension varies before the first call, pad to a few sizes, or pass numbers as tensors.

```python
step = torch.compile(model)
for batch in loader:
    torch._dynamo.mark_dynamic(batch, 0)
    step(batch)
```

## Fix safety

Tolerance: a graph for all sizes may sum in another order than one for a single size. Padding keeps results the same only where
the model masks what was added.

## References

- PyTorch documentation, recompilation:
  https://docs.pytorch.org/docs/main/user_guide/torch_compiler/compile/programming_model.recompilation.html
- PyTorch documentation, torch.compile: https://docs.pytorch.org/docs/stable/generated/torch.compile.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyrometer.compiler.advice.varying import mark_statements, varying_sizes
from pyrometer.rules.compilation.patterns.hypothetical import is_hypothetical
from pyrometer.rules.compilation.patterns.recompilations import Recompilations, recompilations, strict_words
from pyrometer.rules.compilation.patterns.spread import RESOURCE, once_in_a_run
from pyrometer.rules.rule import Case, Findings, declare

if TYPE_CHECKING:
    from pyrometer.compiler.recompiles.record import ChangedInput
    from pyrometer.compiler.report import CompileReport

RULE = declare(code="PYR402", severity="warning", fix_class="tolerance", lever="mark_dynamic")


class Remedy(NamedTuple):
    """What to do about one kind of change."""

    advice: str
    lever: str | None = None
    rewrite: str | None = None


REMEDIES = {
    "rank": "Bring the input to one number of dimensions before the call, for example with unsqueeze.",
    "length": "Stack the items into one tensor, or pad the list to a few lengths.",
    "keys": "Pass dicts with one set of keys, in one order.",
    "value": "Pass the number as a tensor, or choose outside of the compiled function.",
    "attribute": "Pass the value as a tensor, or choose outside of the compiled function.",
    "identity": "Pass the same object each time, or decide outside of the compiled function.",
    "type": "Pass values of one type.",
    "aliasing": "Pass different tensors, or always the same one twice.",
}
OR_MEASURE = " Whether a few padded sizes are faster, pyrometer compile TARGET --shapes FILE and pyrometer.recommend_shapes measure."
GENERAL = "Keep what the guard names the same in all calls, or take what depends on it out of the compiled function."


@RULE.in_evidence("compiled")
def explain(case: Case) -> Findings:
    """One finding per function and input."""
    report = case.compiled
    if report is None:
        return
    for group in recompilations(report, "other"):
        remedy = _remedy(group, report)
        opened = group.changed is not None and group.changed.became_dynamic
        outcome = "; torch now compiles for any value of it" if opened else ""
        would = is_hypothetical(report)
        yield RULE.finding(
            message=f"{group.told(would=would)}: {group.what}{outcome}",
            severity="info" if would or (opened and len(group.recompiles) == 1) else "warning",
            where=group.place,
            evidence={**group.figures, "called_from": group.callers},
            links=group.links,
            cost=None if would else once_in_a_run(group.compile_s, case, report),
            lever=remedy.lever,
            confidence="high",
            advice=remedy.advice,
            rewrite=remedy.rewrite,
            resource=RESOURCE,
        )


def _remedy(group: Recompilations, report: CompileReport) -> Remedy:
    changed = group.changed
    if changed is None:
        return Remedy(GENERAL)
    if changed.kind == "size":
        return _of_size(group, changed)
    return Remedy(strict_words(report, [changed.source]) or REMEDIES.get(changed.kind, GENERAL))


def _of_size(group: Recompilations, changed: ChangedInput) -> Remedy:
    """One graph for all sizes; or, where torch was told to keep to one size per graph, few sizes."""
    sizes = varying_sizes(change for recompile in group.recompiles for change in recompile.changed_inputs)
    mark = mark_statements(sizes) or None
    if changed.became_dynamic:
        which = "this dimension varies" if len(sizes) < 2 else "these dimensions vary"
        text = f": `{mark}`" if mark and len(sizes) == 1 else ", with torch._dynamo.mark_dynamic"
        return Remedy(
            f"Say before the first call that {which}{text}; then one graph is compiled from the start.{OR_MEASURE}",
            "mark_dynamic",
            mark,
        )
    return Remedy(
        "Each size has its own graph. Compile for any size (torch.compile without dynamic=False, or mark_dynamic), or pad to a few "
        f"sizes and compile each once.{OR_MEASURE}",
        "shape_buckets",
        mark,
    )
