"""The compiled program and the eager one give different results.

## What it does

Compares the outputs of the compiled program with those of the eager one, from the same inputs and random state, and reports an
error beyond what the dtype allows: the largest difference over the largest magnitude of the tensor that it is in. Modes of
torch.compile that were evaluated are judged by the same tolerance.

## Why it costs

Fused kernels sum in another order, contract a multiplication and an addition into one rounding, and keep values in float32 where
eager code rounds to half precision between operators. That moves the last digits, some tens of roundings deep at most. More than
that is an instability in the model, an operator with uninitialised memory, or an error of the compiler: the results are not
those that were trained or tested.

## Example

```python
compiled = torch.compile(model)
deploy(compiled)
```

## Use instead

Compare with eager outputs before, and bisect by backend where they differ: `eager` (tracing), `aot_eager` (autograd), Inductor.

```python
compiled = torch.compile(model)
torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-4)
deploy(compiled)
```

## Fix safety

Semantic: what is wrong has to be found first. `torch._inductor.config.emulate_precision_casts = True` makes fused half-precision
code round where eager code does, and costs some speed.

## References

- PyTorch documentation, numerical accuracy: https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html
- PyTorch documentation, torch.compile: https://docs.pytorch.org/docs/stable/generated/torch.compile.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.quantity import significant
from pyrometer.rules.compilation.patterns.compile_calls import compiled_at
from pyrometer.rules.compilation.patterns.hypothetical import is_hypothetical
from pyrometer.rules.finding import Finding, Severity
from pyrometer.rules.rule import Case, Findings, declare

if TYPE_CHECKING:
    from pyrometer.compiler.inspection.record import ModeResult

RULE = declare(code="PYR409", severity="error", fix_class="semantic")

REASONS = {
    1e-4: "float32: another order of summation, and fused multiply-add",
    5e-3: "tf32 and float16: ten bits of mantissa",
    3e-2: "bfloat16: seven bits of mantissa",
}
"""Tolerances with the dtype that they are for."""

HALF = 1e-3
"""Tolerances above are of dtypes with a short mantissa."""

CASTS = "torch._inductor.config.emulate_precision_casts = True"
BISECT = 'Compile with backend="eager", then "aot_eager", and compare again: the first one that differs says which part of the compiler it is.'
HALF_ADVICE = "Let fused code round where eager code does and compare again; if that is it, compute the unstable part in float32. "


@RULE.in_evidence("compiled")
def explain(case: Case) -> Findings:
    """The program as it is compiled, and each evaluated mode that drifts."""
    report = case.compiled
    if report is None:
        return
    severity: Severity = "warning" if is_hypothetical(report) else "error"
    error = report.error
    if error is not None and not error.within_tolerance:
        yield _finding(
            case,
            f"Compiled outputs differ from eager ones{_by_how_much(error.max_rel, error.tolerance, error.mismatch)}",
            {
                "max_rel": error.max_rel,
                "max_abs": error.max_abs,
                "cosine": error.cosine,
                "tolerance": error.tolerance,
                "tolerance_is_for": REASONS.get(error.tolerance),
                "mismatch": error.mismatch,
            },
            severity=severity,
            link="/compiled/error",
        )
    for number, mode in enumerate(report.evaluation.modes if report.evaluation is not None else ()):
        if _drifts(mode):
            yield _finding(
                case,
                f"Outputs in mode {mode.mode} differ from eager ones: {mode.failure}",
                {"mode": mode.mode, "max_rel": mode.max_rel, "max_abs": mode.max_abs, "cosine": mode.cosine},
                severity="warning",
                link=f"/compiled/evaluation/modes/{number}",
            )


def _finding(
    case: Case,
    message: str,
    figures: dict[str, float | str | None],
    *,
    severity: Severity,
    link: str,
) -> Finding:
    tolerance = figures.get("tolerance")
    is_half = isinstance(tolerance, float) and tolerance > HALF and not figures.get("mismatch")
    return RULE.finding(
        message=message,
        severity=severity,
        where=compiled_at(case),
        evidence=figures,
        links=[link],
        confidence="high",
        advice=(HALF_ADVICE if is_half else "") + BISECT,
        rewrite=CASTS if is_half else None,
        resource="compiled-output",
    )


def _by_how_much(max_rel: float, tolerance: float, mismatch: str | None) -> str:
    if mismatch is not None:
        return f": {mismatch}"
    reason = REASONS.get(tolerance)
    allowed = f"{significant(tolerance, 1)} is allowed" + (f" ({reason})" if reason else "")
    return f" by {significant(max_rel)} of the largest value, {allowed}"


def _drifts(mode: ModeResult) -> bool:
    """Whether a mode was measured, and failed only for what it computes."""
    return mode.failure is not None and mode.max_rel is not None
