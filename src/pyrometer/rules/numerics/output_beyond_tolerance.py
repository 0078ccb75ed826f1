"""The output differs from the reference beyond the tolerance of its precision.

## What it does
Compares what the compiled program returns with what the eager one does on the same inputs, and a model in low precision with
itself in float32. The tolerance is that of the dtype: some tens of its unit round-off, relative to the largest value.

## Why it costs
A faster program that computes something else is no gain; whoever relies on its speed gets other answers. Sums in another
order explain differences within the tolerance, not beyond.

## Example
```python
model = torch.compile(model, mode="max-autotune")
serve(model)
```

## Use instead
Compare before relying on it, and leave out of the optimisation what differs.
```python
compiled = torch.compile(model)
torch.testing.assert_close(compiled(example), model(example), rtol=1e-4, atol=1e-5)
```

## Fix safety
No fix is applied. Leaving a part uncompiled, or in float32, changes its results by the difference that is reported.

## References
- PyTorch, torch.compile troubleshooting: https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html
- PyTorch, Numerical accuracy: https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html
"""

from __future__ import annotations

from typing import NamedTuple

from pyrometer.place import Place
from pyrometer.quantity import significant
from pyrometer.rules.rule import Case, Findings, declare

RULE = declare(code="PYR708", severity="error", fix_class="tolerance")


class Difference(NamedTuple):
    """How far two outputs are apart."""

    max_rel: float
    max_abs: float
    cosine: float
    tolerance: float
    mismatch: str | None

    @property
    def said(self) -> str:
        """The difference in words."""
        if self.mismatch is not None:
            return self.mismatch
        return f"by {significant(self.max_rel)} of the largest value, where {significant(self.tolerance)} is legal"


@RULE.in_evidence("compiled")
def of_compilation(case: Case) -> Findings:
    """Compiled against eager."""
    error = case.compiled.error if case.compiled is not None else None
    if error is None or error.within_tolerance:
        return
    apart = Difference(error.max_rel, error.max_abs, error.cosine, error.tolerance, error.mismatch)
    yield RULE.finding(
        message=f"the compiled program's output differs from the eager one's: {apart.said}",
        where=Place(),
        evidence=_figures(apart),
        links=["/compiled/error"],
        confidence="high",
        advice=(
            "Do not use the compiled program yet. Find the part that differs by compiling one module after the other, and keep it "
            "out with `torch.compiler.disable`; where half precision is at work, let Inductor round as eager does."
        ),
        rewrite="torch._inductor.config.emulate_precision_casts = True",
    )


@RULE.in_evidence("numerics")
def of_precision(case: Case) -> Findings:
    """Low precision against float32."""
    shift = case.numerics.shift if case.numerics is not None else None
    if shift is None or shift.within_tolerance:
        return
    apart = Difference(shift.max_rel, shift.max_abs, shift.cosine, shift.tolerance, shift.mismatch)
    yield RULE.finding(
        severity="error" if shift.mismatch is not None else "warning",
        message=f"the output in {shift.changed} differs from {shift.reference}: {apart.said}",
        where=Place(),
        evidence=_figures(apart),
        links=["/numerics/shift"],
        confidence="high",
        advice=(
            f"Keep parameters in float32 and use autocast instead of casting the model to {shift.changed}; compute the "
            "normalisations, softmax and last layer in float32."
        ),
        sketch=f"torch.autocast(device_type, dtype=torch.{shift.changed})",
    )


def _figures(apart: Difference) -> dict[str, float | int | str | bool | list[str] | list[float] | None]:
    return {
        "max_rel": apart.max_rel,
        "max_abs": apart.max_abs,
        "cosine": apart.cosine,
        "tolerance": apart.tolerance,
        "mismatch": apart.mismatch,
    }
