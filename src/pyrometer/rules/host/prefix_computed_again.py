"""Each new token recomputes all tokens before it: there is no KV cache.

## What it does
Finds loops in which a tensor grows along a dimension other than the first by `torch.cat` with itself, what is added is computed from
all of it, and a module or a function of the program computes it. With samples of the host's time it tells what the loop takes.

## Why it costs
The round for token n does the work of n tokens, so that all rounds together do the square of what is needed: in a network in which each
position sees only earlier ones, nothing changes at those. Kept keys and values, or the state of a recurrent layer, leave the work of
one token to each round.

## Example
```python
import torch


def complete(decoder, tokens, count):
    for _ in range(count):
        scores = decoder(tokens)
        tokens = torch.cat([tokens, scores[:, -1:].argmax(-1)], dim=1)
    return tokens
```

## Use instead
```python
import torch


def complete(decoder, tokens, count):
    pieces, past = [tokens], None
    for _ in range(count):
        scores, past = decoder(pieces[-1], past)  # each attention keeps its keys and values
        pieces.append(scores[:, -1:].argmax(-1))
    return torch.cat(pieces, dim=1)
```

## Fix safety
No fix is applied: layers have to take and return what is kept. Results round differently; where a position sees later ones, or the
window that the network sees is cut off in front, they are others.

## References
- PyTorch, Accelerating Generative AI II, GPT, Fast: https://pytorch.org/blog/accelerating-generative-ai-2/
- Hugging Face, Caching: https://huggingface.co/docs/transformers/cache_explanation
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pyrometer.advice import Gain
from pyrometer.place import Place
from pyrometer.quantity import format_percent
from pyrometer.rules.host.patterns.prefixes import Prefix, prefixes
from pyrometer.rules.host.patterns.spending import is_certain, removal
from pyrometer.rules.joining import module_of
from pyrometer.rules.match import Matches, match
from pyrometer.rules.places import spoken
from pyrometer.rules.rule import Case, Findings, Limit, Module, declare

if TYPE_CHECKING:
    from pyrometer.host.profile import HostLoop

RULE = declare(
    code="PYR131",
    severity="warning",
    fix_class="tolerance",
    limits=(
        Limit("min_share", 0.15, "of the step: less does not repay another interface of the layers"),
        Limit("min_rounds", 4, "each time the loop is entered: fewer do little more than what is needed"),
    ),
)

UNCOUNTED = 16
"""Rounds that a loop is taken to have whose rounds were not counted."""

STAYS = 0.5
"""Of the loop's time at worst: the operators of a round have a price each, however little they work on."""


@RULE.in_source
def find(module: Module) -> Matches:
    """Such loops outside of tests."""
    for prefix in prefixes(module):
        if not module.region(prefix.call).test:
            yield match(
                prefix.loop.test if isinstance(prefix.loop, ast.While) else prefix.loop.iter,
                f"each round computes all of `{prefix.name}` again (line {prefix.call.lineno}), and adds a little to it",
                advice=_advice(prefix),
                confidence="medium",
                hot=getattr(module.hot(prefix.call), "why", None),
            )


@RULE.in_evidence("host", "source")
def explain(case: Case) -> Findings:
    """Such loops, with what their rounds take."""
    assert case.host is not None
    for module in case.modules:
        for prefix in prefixes(module):
            loop = _sampled(case, module, prefix)
            share = 0.0 if loop is None else case.host.share(loop.total_s)
            if loop is None or share < case.limit(RULE, "min_share") or not is_certain(case.host, share):
                continue
            rounds = _rounds(loop)
            if rounds is not None and rounds < case.limit(RULE, "min_rounds"):
                continue
            often = "each round" if rounds is None else f"each of {rounds:,.0f} rounds"
            place = Place(file=module.path, line=prefix.loop.lineno, function=loop.where.function)
            most = removal(case.host, share, stays=STAYS)
            yield RULE.finding(
                message=f"{often} recomputes all of `{prefix.name}`{spoken(place)}, which takes "
                f"{format_percent(share)} of the step",
                where=place,
                evidence={"share": share, "rounds": rounds, "grows_in_line": prefix.grown.lineno},
                links=[f"/host/loops/{case.host.loops.index(loop)}"],
                cost=case.cost_of(share, "samples of the host's time in the rounds of the loop"),
                gain=Gain(
                    ratio_low=min(1 - share * (1 - 1 / (rounds or UNCOUNTED)), most.ratio_high or 1.0),
                    ratio_high=most.ratio_high,
                    method="bound: at best all rounds together cost as much as one does now, at worst half of their time stays",
                ),
                confidence="medium" if rounds is None else "high",
                advice=_advice(prefix),
            )


def _rounds(loop: HostLoop) -> float | None:
    """Each time the loop is entered; null where that was not counted, as of a loop whose rounds are the steps."""
    if loop.rounds_per_step is None or loop.entered_per_step == 0:
        return None
    return loop.rounds_per_step / (loop.entered_per_step or 1.0)


def _advice(prefix: Prefix) -> str:
    return (
        f"Give the network only what is new in `{prefix.name}`, and keep what it computed of the rest: keys and values of each attention "
        "(`past_key_values` of transformers), the state of recurrent layers. It holds where each position sees only earlier ones."
    )


def _sampled(case: Case, module: Module, prefix: Prefix) -> HostLoop | None:
    """The loop in the profile."""
    assert case.host is not None
    loops = (loop for loop in case.host.loops if loop.where.line == prefix.loop.lineno)
    return next((loop for loop in loops if module_of(loop.where.file, case.modules) is module), None)
