"""Operators compute with numbers so small that the processor takes its slow path.

## What it does
Looks at samples of what operators read and write in a few steps, and finds float32 or float64 numbers other than zero below the smallest
normal one (1.2e-38, 2.2e-308). It speaks where the operators that work on them take a good part of the step.

## Why it costs
Most x86 processors compute with such numbers in microcode, some hundred cycles for each; one in a hundred makes an operator several times slower. States that
decay come there: traces of neurons, echoes, filters, moments of an optimizer, activations of a network that is quiet. Simulated neurons
took 6 times as long as with these numbers taken for zero.

## Example
```python
for x in inputs:
    state = state * 0.5 + weight * x
```

## Use instead
```python
torch.set_flush_denormal(True)
for x in inputs:
    state = state * 0.5 + weight * x
```
It holds for the thread that calls it and those started after it: call it first.

## Fix safety
No fix is applied: what is below 1.2e-38 becomes zero.

## References
- PyTorch, torch.set_flush_denormal: https://docs.pytorch.org/docs/stable/generated/torch.set_flush_denormal.html
- Intel, "Set the FTZ and DAZ Flags": https://www.intel.com/content/www/us/en/docs/cpp-compiler/developer-guide-reference/2021-8/set-the-ftz-and-daz-flags.html
"""

from __future__ import annotations

from pyrometer.advice import Gain
from pyrometer.quantity import Ratio, format_percent
from pyrometer.rules.flowing import METHOD, as_traced, left_at_best, of_step
from pyrometer.rules.joining import is_same_file
from pyrometer.rules.places import place_of, spoken
from pyrometer.rules.rule import Case, Findings, Limit, declare

RULE = declare(
    code="PYR537",
    severity="warning",
    fix_class="tolerance",
    lever="flush_denormals",
    limits=(Limit("min_share", 0.1, "of the step: less does not repay a global setting"),),
)

WORST = 0.3
"""Of the operators' time that goes at worst: where few numbers are so small, most of it is work."""


@RULE.in_evidence("dataflow")
def explain(case: Case) -> Findings:
    """The line that takes the most of it, with what all of them take: one setting mends them."""
    assert case.dataflow is not None
    facts = case.dataflow.subnormal
    told = min(1.0, sum(of_step(case, as_traced(case, fact.share, fact.where)) for fact in facts))
    if not facts or told < case.limit(RULE, "min_share"):
        return
    first = facts[0]
    place = place_of(case, first.where, op=first.operators[0])
    yield RULE.finding(
        message=f"up to {format_percent(first.subnormal_share)} of the numbers{spoken(place)} are next to zero, which the processor computes with slowly; operators on such "
        f"numbers take {format_percent(told)} of the step",
        where=place,
        evidence={"share": told, "subnormal_share": first.subnormal_share, "operators": first.operators},
        links=[f"/dataflow/subnormal/{number}" for number in range(len(facts))],
        cost=case.cost_of(told, METHOD),
        gain=Gain(
            ratio_low=left_at_best(max(told, _of_lines(case))),
            ratio_high=1 - WORST * told,
            method="removal: the slow path of these operators; at best of all that their lines take, since states decay further",
        ),
        confidence="medium",
        advice="Call `torch.set_flush_denormal(True)` before anything else, which takes them for zero; or set to zero what has decayed.",
        sketch="torch.set_flush_denormal(True)",
        resource="subnormal",
    )


def _of_lines(case: Case) -> Ratio:
    """What the lines of these operators take of a step by samples, which saw later steps than those whose values were followed."""
    if case.host is None or case.dataflow is None:
        return 0.0
    places = [fact.where for fact in case.dataflow.subnormal]
    spent = (
        line.own_s
        for line in case.host.lines
        if any(
            line.where.line == place.line and is_same_file(line.where.file or "", place.file or "")
            for place in places
        )
    )
    return min(1.0, case.host.share(sum(spent)))
