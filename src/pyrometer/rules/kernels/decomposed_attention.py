"""Attention is written out as two products and a softmax.

## What it does
Finds functions that multiply queries with transposed keys, take the softmax (with scaling, a mask or dropout in between) and
multiply it with the values, where nothing else reads the weights. With a trace it tells what they take.

## Why it costs
Written out, the matrix of weights (batch × heads × length × length) is written and read by every step on the way. The fused
operator works on blocks that stay in a cache. On one CPU core, 8 heads of 64, it took 0.30 of the time at a length of 512
and 0.15 at 2048 with a causal mask, but 0.96 at 128: the gain grows with the length.

## Example
```python
import math
import torch
from torch import nn

class Attention(nn.Module):
    def forward(self, q, k, v):
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return weights @ v
```

## Use instead
```python
from torch import nn
from torch.nn import functional

class Attention(nn.Module):
    def forward(self, q, k, v):
        return functional.scaled_dot_product_attention(q, k, v)
```

## Fix safety
The same function up to rounding. The rewrite is given where scale, mask and dropout are understood wholly. A mask becomes `attn_mask` (for boolean masks, true means: take part), a causal one
`is_causal=True`, another scale than one over the root of the head's size `scale`, and a scale that is learned goes into the
queries. Rows that are masked entirely give zeros
instead of NaN or a mean.

## References
- PyTorch, torch.nn.functional.scaled_dot_product_attention: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
- Dao et al., "FlashAttention": https://arxiv.org/abs/2205.14135
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.place import Place
from pyrometer.quantity import format_percent
from pyrometer.rules.kernels.patterns.attention_pattern import Attention, written_out
from pyrometer.rules.kernels.patterns.fused_attention import fused
from pyrometer.rules.kernels.patterns.operators import (
    callers_of,
    cost_of,
    on_device,
    same_function,
)
from pyrometer.rules.match import Fix, Matches, match
from pyrometer.rules.places import spoken
from pyrometer.rules.rule import Case, Findings, Limit, Module, declare
from pyrometer.rules.untraced import untraced
from pyrometer.source.rewriting import rewritten

if TYPE_CHECKING:
    from pyrometer.trace.reporting.totals import LineTotal

RULE = declare(
    code="PYR510",
    severity="warning",
    fix_class="tolerance",
    lever="sdpa",
    limits=(
        Limit("min_share", 0.03, "below three percent of the step the fused operator gains next to nothing"),
    ),
)

SOFTMAX = frozenset(["aten::softmax", "aten::_softmax"])
PARTS = SOFTMAX | {
    "aten::bmm",
    "aten::baddbmm",
    "aten::mul",
    "aten::div",
    "aten::masked_fill",
    "aten::masked_fill_",
    "aten::add",
    "aten::where",
}
"""Operators of a written-out attention, by which its function spends its time."""

MASKING = "aten::masked_fill"
"""Copies all weights before it fills them, and the time of that is the copy's."""

GAIN_LOW, GAIN_HIGH = 0.85, 0.04
"""Share of the attention's time that the fused operator saved on one core: at a length of 2048 with a mask, and at 128."""


ADVICE = (
    "Use torch.nn.functional.scaled_dot_product_attention, with attn_mask, dropout_p, is_causal and scale as they are here, and "
    "compare the results."
)


@RULE.in_source
def find(module: Module) -> Matches:
    """Attention that is written out in code that runs once per step."""
    for attention in written_out(module):
        why = module.hot(attention.softmax)
        region = module.region(attention.softmax)
        if why is None or region.scripted or region.test:
            continue
        yield match(
            attention.softmax,
            f"attention of {attention.query}, {attention.key} and {attention.value} is written out, so that all its weights go through memory",
            advice=ADVICE,
            fix=_fix(module, attention),
            confidence="medium",
            hot=why.why,
        )


def _fix(module: Module, attention: Attention) -> Fix | None:
    edits = fused(module, attention)
    return Fix(fix_class=RULE.fix_class, title="Use the fused operator", edits=edits) if edits else None


@RULE.in_evidence("trace", "source")
def explain(case: Case) -> Findings:
    """Attention in a function in which the trace shows a softmax."""
    trace = case.trace
    if trace is None:
        return
    for line, _ in callers_of(trace, PARTS):
        copying = {"aten::copy_"} if any(op.name == MASKING for op in line.top_ops) else set()
        parts = PARTS | copying
        ns = sum(op.device_ns if on_device(trace) else op.host_ns for op in line.top_ops if op.name in parts)
        share = min(1.0, ns / max(trace.span_ns, 1))
        places = [
            (module, attention)
            for module in case.modules
            for attention in written_out(module)
            if same_function(case, line, module, attention.softmax.lineno)
        ]
        if places and share >= case.limit(RULE, "min_share"):
            yield from _findings(case, line, places, share / len(places))


def _findings(case: Case, line: LineTotal, places: list[tuple[Module, Attention]], part: float) -> Findings:
    for module, attention in places:
        place = Place(
            file=module.path, line=attention.softmax.lineno, function=line.function, op="aten::softmax"
        )
        yield RULE.finding(
            message=f"Attention is written out{spoken(place)}: its parts take {format_percent(part)} of the time.",
            where=place,
            evidence={"share": part},
            links=["/trace/top_lines"],
            cost=cost_of(case, part, "time of softmax, products, scaling and masks in this function"),
            gain=untraced(case, part).gain(
                "bound: what the fused operator saved on one core at lengths from 128 to 2048",
                best=GAIN_LOW,
                worst=GAIN_HIGH,
            ),
            confidence="medium",
            advice=ADVICE,
            rewrite=rewritten(module, fused(module, attention)),
            resource=f"attention:{module.path}:{attention.softmax.lineno}",
        )
