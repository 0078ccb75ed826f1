"""A step computes the same result again and again.

## What it does
Follows the values of a few recorded steps, and finds operators that are given what they were given before in the same step: the
same tensors, into which nothing was written meanwhile, or tensors that were made of the same by the same operators. It speaks where
what is needless takes a good part of the step, at the line that computes it.

## Why it costs
The second time brings nothing. A decoder that projects the keys and values of a fixed memory for each word that it writes spends most
of its time on results that it had after the first word; the same holds for a mask that each layer builds for itself, and for the norm of a
reference that is computed for each candidate.

## Example
```python
def write(decoder, memory, word, count):
    for _ in range(count):
        keys, values = decoder.project(memory)
        word = decoder.next_word(word, keys, values)
    return word
```

## Use instead
```python
def write(decoder, memory, word, count):
    keys, values = decoder.project(memory)
    for _ in range(count):
        word = decoder.next_word(word, keys, values)
    return word
```

## Fix safety
No fix is applied: the values are the same; what is kept takes memory until the step is over, and nobody may write into it.

## References
- Hugging Face, Caching: https://huggingface.co/docs/transformers/cache_explanation
- Python, `functools.cached_property`: https://docs.python.org/3/library/functools.html#functools.cached_property
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.advice import Gain
from pyrometer.quantity import Ratio, format_percent
from pyrometer.rules.flowing import METHOD, left_at_best, of_step
from pyrometer.rules.host.patterns.spending import is_certain, loop_around, rounds_text, spread
from pyrometer.rules.joining import is_same_file
from pyrometer.rules.places import place_of, spoken
from pyrometer.rules.rule import Case, Findings, Limit, declare
from pyrometer.rules.untraced import Share

if TYPE_CHECKING:
    from pyrometer.dataflow.report import Repeated
    from pyrometer.host.profile import HostLine

RULE = declare(
    code="PYR134",
    severity="warning",
    fix_class="exact",
    limits=(Limit("min_share", 0.08, "of the step: less does not repay keeping a result"),),
)

STAYS = 0.2
"""Of the needless time at worst: what is kept is read from memory again."""


@RULE.in_evidence("dataflow")
def explain(case: Case) -> Findings:
    """Lines that compute again what the same step has computed."""
    assert case.dataflow is not None
    for number, fact in enumerate(case.dataflow.repeated):
        told, share = _share(case, fact)
        if fact.since != "same step" or fact.where.file is None or told < case.limit(RULE, "min_share"):
            continue
        place, line = place_of(case, fact.where, op=fact.operators[0]), _line(case, fact)
        loop = None if case.host is None or line is None else loop_around(case.host, line)
        results = "one result" if fact.results == 1 else f"{fact.results} results"
        yield RULE.finding(
            message=f"{', '.join(fact.operators[:2])}{spoken(place)} compute{'s' if len(fact.operators) == 1 else ''} {results} again that the step has "
            f"already, {fact.calls_per_step:,.0f} times in each{rounds_text(loop)}: {format_percent(told)} of it",
            where=place,
            evidence={
                "share": told,
                "results": fact.results,
                "calls_per_step": fact.calls_per_step,
                "operators": fact.operators,
            },
            links=[f"/dataflow/repeated/{number}"],
            cost=case.cost_of(told, METHOD),
            gain=Gain(
                ratio_low=left_at_best(share.most),
                ratio_high=1 - (1 - STAYS) * share.least,
                method="removal: all but the first computation of each result",
            ),
            confidence="high",
            advice="Compute it once, before the loop or in the caller, and hand the result on; where several modules need it, let the first keep it for "
            "the others, or compute it in the module above them.",
            resource=f"again:{place.text}",
        )


def _share(case: Case, fact: Repeated) -> tuple[Ratio, Share]:
    """What is needless of a step: by samples of its line, where there are enough, else by the recorded operators."""
    line = _line(case, fact)
    if case.host is not None and line is not None:
        share = case.host.share(line.own_s) * fact.of_line
        if is_certain(case.host, share):
            return share, spread(case.host, share)
    share = of_step(case, fact.share)
    return share, Share(share, min(1.0, fact.share))


def _line(case: Case, fact: Repeated) -> HostLine | None:
    lines = case.host.lines if case.host is not None else []
    return next(
        (
            line
            for line in lines
            if line.where.line == fact.where.line
            and is_same_file(line.where.file or "", fact.where.file or "")
        ),
        None,
    )
