"""The distribution of the outputs has shifted against the reference.

## What it does
Compares the outputs of a model in low precision with those of the same model in float32, as distributions: the largest shift of
a quantile, in standard deviations of the reference, and the share of rows whose largest entry is another one.

## Why it costs
Each single value may be within the tolerance while all of them drift one way: thresholds, calibrated probabilities and what was
tuned on the old outputs are off, without any error.

## Example
```python
model = model.to(torch.float16)
scores = model(inputs)
accepted = scores > threshold
```

## Use instead
Check the distribution, not only single values, and set thresholds again on outputs of the changed model.
```python
reference, changed = model(inputs), model.to(torch.float16)(inputs.half()).float()
levels = torch.tensor([0.05, 0.5, 0.95])
shift = (changed.quantile(levels) - reference.quantile(levels)).abs() / reference.std()
assert shift.max() < 0.05
```

## Fix safety
No fix is applied: which shift is legal is for the application to say.

## References
- PyTorch, Numerical accuracy, "Reduced precision reduction": https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html
- SciPy, two-sample Kolmogorov-Smirnov test: https://docs.scipy.org/doc/scipy/reference/generated/scipy.stats.ks_2samp.html
"""

from __future__ import annotations

from pyrometer.place import Place
from pyrometer.quantity import format_percent, significant
from pyrometer.rules.rule import Case, Findings, Limit, declare

RULE = declare(
    code="PYR709",
    severity="warning",
    scope="symptom",
    fix_class="tolerance",
    limits=(
        Limit(
            "max_quantile_shift",
            0.05,
            "a twentieth of a standard deviation moves one value in fifty over a threshold",
        ),
        Limit(
            "min_same_top", 0.99, "more rows with another winner than one in a hundred show in an accuracy"
        ),
    ),
)


@RULE.in_evidence("numerics")
def explain(case: Case) -> Findings:
    """Quantiles and winners of low precision against float32."""
    shift = case.numerics.shift if case.numerics is not None else None
    if shift is None or shift.quantile_shift is None:
        return
    moved = shift.quantile_shift > case.limit(RULE, "max_quantile_shift")
    others = shift.same_top is not None and shift.same_top < case.limit(RULE, "min_same_top")
    if not (moved or others):
        return
    said = [f"a quantile is off by {significant(shift.quantile_shift)} standard deviations"] if moved else []
    said += (
        [f"{format_percent(1 - (shift.same_top or 0.0))} of the rows have another largest entry"]
        if others
        else []
    )
    yield RULE.finding(
        message=f"in {shift.changed} the distribution of the outputs differs from {shift.reference}: {' and '.join(said)}",
        where=Place(),
        evidence={
            "quantile_shift_in_std": shift.quantile_shift,
            "distribution_distance": shift.distribution_distance,
            "same_top_share": shift.same_top,
            "max_rel": shift.max_rel,
        },
        links=["/numerics/shift"],
        confidence="high" if moved else "medium",
        advice=(
            "Compute the last layers, normalisations and softmax in float32, and compare on real inputs again; set thresholds anew "
            "where the shift stays."
        ),
    )
