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

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from pyrometer.advice import Gain
from pyrometer.quantity import Ratio, format_percent
from pyrometer.rules.finding import Finding
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


class Again(NamedTuple):
    """What a step computes again at one line."""

    number: int
    fact: Repeated
    told: Ratio
    share: Share


@RULE.in_evidence("dataflow")
def explain(case: Case) -> Findings:
    """What is computed again, by line; where lines of one part of a model do so, one finding for the part."""
    assert case.dataflow is not None
    parts: dict[str, list[Again]] = defaultdict(list)
    for number, fact in enumerate(case.dataflow.repeated):
        if fact.since == "same step" and fact.where.file is not None:
            part = (fact.where.module or "").partition(".")[0]
            parts[part or fact.where.text].append(Again(number, fact, *_share(case, fact)))
    for every in parts.values():
        told = min(1.0, sum(again.told for again in every))
        if told >= case.limit(RULE, "min_share"):
            yield _finding(case, every, told)


def _finding(case: Case, every: list[Again], told: Ratio) -> Finding:
    first = every[0].fact
    part = (first.where.module or "").partition(".")[0]
    place, line = place_of(case, first.where, op=first.operators[0]), _line(case, first)
    operators = list(dict.fromkeys(operator for again in every for operator in again.fact.operators))
    number = sum(again.fact.results for again in every)
    loop = None if case.host is None or line is None else loop_around(case.host, line)
    results = "one result" if number == 1 else f"{number} results"
    who = f"`{part}`" if len(every) > 1 and part else f"{', '.join(operators[:2])}{spoken(place)}"
    verb = "compute" if len(operators) > 1 and len(every) == 1 else "computes"
    return RULE.finding(
        message=f"{who} {verb} {results} again that the step has "
        f"already, {first.calls_per_step:,.0f} times in each{rounds_text(loop)}: {format_percent(told)} of it",
        where=place,
        evidence={
            "share": told,
            "results": number,
            "calls_per_step": first.calls_per_step,
            "operators": operators,
        },
        links=[f"/dataflow/repeated/{again.number}" for again in every],
        cost=case.cost_of(told, METHOD),
        gain=Gain(
            ratio_low=left_at_best(min(1.0, sum(again.share.most for again in every))),
            ratio_high=1 - (1 - STAYS) * min(1.0, sum(again.share.least for again in every)),
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
