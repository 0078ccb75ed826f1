"""A compiled function recompiles because the dtype, device, layout or gradient mode of its input changes.

## What it does

Reports each function of which torch.compile made another graph for a change of dtype, device, strides, `requires_grad`, of the
tensor's class, or of the state that the call is made in: gradient mode, autocast, default dtype, number of threads.

## Why it costs

Each of these is fixed in a compiled graph, and torch never opens one as it opens sizes: every combination that occurs is compiled
by itself, while the program waits, and counts towards the limit behind which the function runs eagerly. Most such changes
are accidents: a transposed batch, a float64 array of numpy, an evaluation with gradients.

## Example

```python
step = torch.compile(model)
step(torch.from_numpy(frame))           # float64
step(torch.randn(1, 3, 64, 64))         # float32: compiled again
```

## Use instead

Bring the input to one dtype, layout and mode before the compiled function is called.

```python
step = torch.compile(model)
with torch.no_grad():
    step(torch.from_numpy(frame).float().contiguous())
    step(torch.randn(1, 3, 64, 64))
```

## Fix safety

Semantic: another dtype or gradient mode is another computation. Making a tensor contiguous copies it and changes no value.

## References

- PyTorch documentation, recompilation:
  https://docs.pytorch.org/docs/main/user_guide/torch_compiler/compile/programming_model.recompilation.html
"""

from __future__ import annotations

from pyrometer.rules.compilation.patterns.hypothetical import is_hypothetical
from pyrometer.rules.compilation.patterns.recompilations import Recompilations, recompilations
from pyrometer.rules.compilation.patterns.spread import RESOURCE, once_in_a_run
from pyrometer.rules.rule import Case, Findings, declare

RULE = declare(code="PYR403", severity="warning", fix_class="semantic")

GRAD_MODE = "grad_mode"

REMEDIES = {
    "dtype": ("Convert the input to one dtype before the call", "{name} = {name}.to({before})"),
    "device": ("Bring the input to the model's device before the call", "{name} = {name}.to({before!r})"),
    "stride": ("Bring the input to one layout before the call", "{name} = {name}.contiguous()"),
    "storage_offset": ("Pass a copy instead of a part of a larger tensor", "{name} = {name}.clone()"),
    "requires_grad": (
        "Give the input the same requires_grad in all calls, or detach it",
        "{name} = {name}.detach()",
    ),
    "type": ("Pass a plain tensor, not a parameter", "{name} = {name}.detach()"),
}
MODE = "Make all calls under one gradient mode and one autocast setting, in one place around them"
GENERAL = "Give the input the same properties in all calls"


@RULE.in_evidence("compiled")
def explain(case: Case) -> Findings:
    """One finding per function and property."""
    report = case.compiled
    if report is None:
        return
    would = is_hypothetical(report)
    for group in recompilations(report, "property"):
        advice, rewrite = _remedy(group)
        yield RULE.finding(
            message=f"{group.told(would=would)}: {group.what}",
            severity="info" if would or _is_train_and_eval(group) else "warning",
            where=group.place,
            evidence={
                **group.figures,
                "property": group.changed.kind if group.changed else "",
                "called_from": group.callers,
            },
            links=group.links,
            cost=None if would else once_in_a_run(group.compile_s, case, report),
            confidence="high",
            advice=f"{advice}.",
            rewrite=rewrite,
            resource=RESOURCE,
        )


def _is_train_and_eval(group: Recompilations) -> bool:
    """One graph with gradients and one without is what training with an evaluation needs."""
    changed = group.changed
    return changed is not None and changed.source == GRAD_MODE and len(group.recompiles) == 1


def _remedy(group: Recompilations) -> tuple[str, str | None]:
    """What to do; and code, where the input is an argument with a name of its own."""
    changed = group.changed
    if changed is None:
        return GENERAL, None
    if changed.kind in {"global_state", "dispatch"}:
        return MODE, None
    advice, code = REMEDIES.get(changed.kind, (GENERAL, None))
    name = changed.name.partition(",")[0].removeprefix("type of ")
    if code is None or not name.isidentifier() or not changed.before:
        return advice, None
    return advice, code.format(name=name, before=changed.before[0])
