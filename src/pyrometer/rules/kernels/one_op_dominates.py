"""One operator takes most of the step.

## What it does
Names the operator that takes 30 % of the step or more by itself, with its calls, the cost of one, its shapes and the line that
calls it. It says where to look first. Matrix products, convolutions, attention and recurrent layers
are what a network consists of: they are named only where their shapes are awkward. It is a remark, but for an operator of no layer
that the program's own code calls and that takes 40 %: that is a fault more often than not.

## Why it costs
Whatever else is made faster, this stays. By Amdahl's law halving an operator with a share of s makes the step s/2 shorter, and
removing everything else cannot bring more than a factor of 1/s.

## Example
```python
import torch

best = torch.sort(scores, dim=1, descending=True).values[:, :10]
```

## Use instead
Ask whether all that it computes is needed, whether there is an operator that does just that, and whether its shapes suit it.
```python
import torch

best = torch.topk(scores, 10, dim=1).values
```

## Fix safety
There is no fix that holds for all operators.

## References
- PyTorch Profiler recipe: https://docs.pytorch.org/tutorials/recipes/recipes/profiler_recipe.html
- Amdahl, "Validity of the single processor approach to achieving large scale computing capabilities": https://doi.org/10.1145/1465482.1465560
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyrometer.place import Place
from pyrometer.quantity import counted, format_percent, format_seconds
from pyrometer.rules.kernels.patterns.operators import (
    CONVOLUTIONS,
    MATRIX_PRODUCTS,
    calls_per_step,
    cost_of,
    on_device,
    own_share,
    place_of_operator,
    shapes_of,
)
from pyrometer.rules.places import spoken
from pyrometer.rules.rule import Case, Findings, Limit, declare
from pyrometer.rules.untraced import untraced
from pyrometer.source.words import words

if TYPE_CHECKING:
    from pyrometer.trace.reporting.totals import RoofPoint

RULE = declare(
    code="PYR516",
    severity="info",
    scope="symptom",
    fix_class="semantic",
    limits=(
        Limit("min_share", 0.3, "from a third of the step on, one operator decides"),
        Limit(
            "min_call_s", 50e-6, "shorter calls are mostly dispatch: their number decides, not the operator"
        ),
        Limit("thin", 16, "a side of a matrix product below this leaves vector and matrix units unused"),
    ),
)

NETWORK = re.compile(
    r"aten::\w*(scaled_dot_product|flash_attention|efficient_attention|rnn|lstm|gru|thnn_fused)"
)
"""Other operators than products and convolutions that a network is made of."""

LAYERS = re.compile(
    r"softmax|norm|gelu|silu|relu|mish|elu|tanh|sigmoid|embedding|pool|loss|dropout|backward|copy|upsample|interpolate|grid_sampl|::(cat|stack)$"
)
"""Operators of layers, which may be most of a small network that does what it is for; and copies and joins, of which other rules speak."""

LOUD = 0.4
"""Share of the time from which on an operator of no layer is more than a remark."""

STAYS = 0.2
"""Of an operator of no layer at worst: another one does what is needed of it."""

READS = frozenset({"aten::item", "aten::_local_scalar_dense", "aten::is_nonzero"})
"""Reads of values by the host, of which other rules speak: they take long where the machine is busy."""

VIEWS = frozenset(
    f"aten::{name}"
    for name in words("""
        slice select narrow view _unsafe_view as_strided reshape expand transpose t permute squeeze unsqueeze unbind split
        split_with_sizes chunk detach alias _reshape_alias
        """)
)
"""Operators that move nothing: where a trace shows a long one, the machine was busy with something else."""


ASK = "Ask whether all that it computes is needed, and whether another operator does just that; then look at its shapes."

DOES_LESS = {
    r"sort$": "Where only the first or the last are read, `torch.topk` finds those alone, and `torch.kthvalue` a quantile; where it is for a log, "
    "do it every so many steps.",
    r"unique": "Of values that are sorted, `torch.unique_consecutive` needs no sort; of small integers `torch.bincount` tells which there are.",
    r"svd": "Where only the largest values count, `torch.svd_lowrank` finds these; without the vectors `torch.linalg.svdvals` does.",
    r"linalg_inv": "`torch.linalg.solve(a, b)` takes less than the inverse times `b`, and is more exact.",
    r"::repeat$": "`expand` shows the same values without copying them.",
}
"""Operators that are often asked for more than is used, and what does less."""


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """The largest operator, if it decides."""
    trace = case.trace
    if trace is None or not trace.top_ops:
        return
    i, op = max(enumerate(trace.top_ops), key=lambda one: own_share(trace, one[1]))
    share = own_share(trace, op)
    if share < case.limit(RULE, "min_share") or share > 1:
        return
    spent = op.device_self_ns if on_device(trace) else op.host_self_ns
    calls, call_s = calls_per_step(case, op.calls), spent * 1e-9 / max(op.calls, 1)
    if call_s < case.limit(RULE, "min_call_s"):
        return
    points = [(number, point) for number, point in enumerate(trace.roofline) if point.op == op.name]
    place = place_of_operator(case, op.name)
    awkward = [text for _, point in points[:3] if (text := _awkward(point, case.limit(RULE, "thin")))]
    if not awkward and _is_expected(op.name):
        return
    loud = _is_loud(op.name, share, place)
    yield RULE.finding(
        severity="warning" if loud else "info",
        message=f"{op.name} takes {format_percent(share)} of the time{spoken(place)}: {counted(calls, 'call')}{case.per_step} of "
        f"{format_seconds(call_s)} each under the profiler.",
        where=place,
        evidence={
            "share": share,
            "calls_per_step": calls,
            "seconds_per_call": call_s,
            "shapes": [str(point.shapes) for _, point in points[:3]],
            "awkward_shapes": awkward,
        },
        links=[f"/trace/top_ops/{i}", *(f"/trace/roofline/{number}" for number, _ in points[:1])],
        cost=cost_of(case, share, "its own time in the trace"),
        gain=untraced(case, share).gain(
            f"removal: the operator; at worst {format_percent(STAYS)} of it stays", worst=1 - STAYS
        )
        if loud
        else None,
        confidence="high",
        advice=("Its shapes are awkward: " + "; ".join(awkward) + ". " if awkward else "")
        + next((advice for op_name, advice in DOES_LESS.items() if re.search(op_name, op.name)), ASK),
        resource=f"op:{op.name}",
    )


def _is_loud(op: str, share: float, place: Place) -> bool:
    """Whether so much of one operator is a fault more often than not: it is no layer's own, and the user's code calls it."""
    return share >= LOUD and place.file is not None and not LAYERS.search(op) and not _is_expected(op)


def _is_expected(op: str) -> bool:
    """Whether a network that spends its time there does what it is for, or spends it elsewhere in truth."""
    return op in MATRIX_PRODUCTS | CONVOLUTIONS | VIEWS | READS or NETWORK.match(op) is not None


def _awkward(point: RoofPoint, thin: float) -> str | None:
    """What is odd about the shapes of a matrix product."""
    if point.op not in MATRIX_PRODUCTS:
        return None
    matrices = [shape for shape in shapes_of(point) if len(shape) >= 2][-2:]
    sides = [side for shape in matrices for side in shape[-2:]]
    if sides and min(sides) < thin and max(sides) > thin:
        return f"{' by '.join('×'.join(map(str, shape)) for shape in matrices)} has a side of {min(sides)}"
    return None
