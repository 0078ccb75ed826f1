"""The measurement is too noisy to judge a change.

## What it does
Reads the reservations that the measurement made about itself: no steady state, drift, few samples, a wide interval, compilation while it
ran, a machine that was busy, throttled or shared. One finding tells them all.

## Why it costs
Whatever is derived from the step time (shares, predicted gains, comparisons) inherits its error. A gain below the width of
the interval cannot be seen, and a drift can look like one.

## Example
```python
import pyrometer as pm
import torch

work = pm.Inference(torch.nn.Linear(64, 64), (torch.randn(8, 64),))
print(pm.measure(work, budget_s=0.05).median_s)
```

## Use instead
```python
import pyrometer as pm
import torch

work = pm.Inference(torch.nn.Linear(64, 64), (torch.randn(8, 64),))
measured = pm.measure(work, budget_s=5)
print(measured.median_s, measured.ci_low_s, measured.ci_high_s, measured.warnings)
```

## Fix safety
Nothing in the program changes: it is measured again, longer or on a quieter machine.

## References
- Kalibera and Jones, Rigorous Benchmarking in Reasonable Time, ISMM 2013: https://doi.org/10.1145/2464157.2464160
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.bench.quality import CaveatCode
from pyrometer.place import Place
from pyrometer.quantity import counted, format_percent
from pyrometer.rules.rule import Case, Findings, Limit, declare
from pyrometer.text import with_capital

if TYPE_CHECKING:
    from pyrometer.bench.measurement import Measurement
    from pyrometer.bench.quality import Caveat

RULE = declare(
    code="PYR010",
    severity="warning",
    scope="measurement",
    fix_class="exact",
    limits=(
        Limit(
            "max_half_width", 0.1, "a median that is known worse than to a tenth hides most single changes"
        ),
    ),
)

UNUSABLE = frozenset(
    {"failed", "interrupted", "first_call_only", "not_steady", "drifting", "compiled_while_steady"}
)
"""Reservations after which the step time itself is in doubt."""

HARMLESS = frozenset({"tail_unbounded", "batched", "autocorrelated", "memory_grows", "shape_varies"})
"""Reservations that the intervals allow for, or that rules of their own tell."""


@RULE.in_evidence("measurement")
def explain(case: Case) -> Findings:
    """The caveats of the step time, the most serious first."""
    measured = case.measurement
    if measured is None or measured.failure is not None:
        return
    told = [
        (number, warning) for number, warning in enumerate(measured.warnings) if warning.code not in HARMLESS
    ]
    told.sort(key=lambda one: one[1].code not in UNUSABLE)
    caveats = [caveat for _, caveat in told]
    half = half_width(measured)
    wide = half is not None and half > case.limit(RULE, "max_half_width")
    if not caveats and not wide:
        return
    grave = wide or any(caveat.code in UNUSABLE for caveat in caveats)
    yield RULE.finding(
        message=_message(caveats, half),
        where=Place(),
        evidence={
            "steady": measured.steady,
            "half_width": half,
            "num_samples": measured.num_samples,
            "effective_num_samples": measured.effective_num_samples,
            "caveats": [caveat.message for caveat in caveats],
        },
        links=[f"/measurement/warnings/{number}" for number, _ in told],
        severity="warning" if grave else "info",
        confidence="high",
        advice=_advice(caveats),
    )


def half_width(measured: Measurement) -> float | None:
    """Half the interval of the median, over the median; nothing for a single sample, which has no spread."""
    if measured.num_samples < 2:
        return None
    return (measured.ci_high_s - measured.ci_low_s) / 2 / max(measured.median_s, 1e-12)


def _message(caveats: list[Caveat], half: float | None) -> str:
    """The gravest reservation, and how well the median is known, once."""
    if half is None:
        known = "a single sample has no spread"
    else:
        known = "smaller gains are within noise"
        if not caveats or caveats[0].code != CaveatCode.WIDE_INTERVAL.value:
            known = f"the median is known to ±{format_percent(half, 2)}, and {known}"
    if not caveats:
        return known
    more = f" ({counted(len(caveats) - 1, 'more caveat')})" if len(caveats) > 1 else ""
    return f"{caveats[0].message}{more}; {known}"


def _advice(caveats: list[Caveat]) -> str:
    """What to do: of several wishes for more time the largest; what the machine did is said beside its remedy."""
    longer = [(caveat.needed_s, caveat.advice.title) for caveat in caveats if caveat.needed_s is not None]
    hints = [max(longer)[1]] if longer else []
    for number, caveat in enumerate(caveats):
        if caveat.needed_s is None:
            hints.append(f"{caveat.message}: {caveat.advice.title}" if number else caveat.advice.title)
    text = "; ".join(list(dict.fromkeys(hints))[:3] or ["measure longer"])
    return f"{with_capital(text)}."
