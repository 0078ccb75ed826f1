"""Overlapping boxes are suppressed by a loop in Python.

## What it does
Finds loops that compare the overlap of boxes with a threshold and keep or drop them by it, and speaks where samples of the host's time
were found in one for a good part of the step.

## Why it costs
Each pair of boxes costs a dozen operators on four numbers each, or as many operations of Python. Non-maximum suppression of a library
does a thousand boxes in about a millisecond.

## Example
```python
def suppress(boxes, scores, limit):
    order = scores.argsort(descending=True).tolist()
    kept = []
    while order:
        best = order.pop(0)
        kept.append(best)
        order = [i for i in order if iou(boxes[best], boxes[i]) <= limit]
    return torch.tensor(kept)
```

## Use instead
With torchvision `torchvision.ops.nms(boxes, scores, limit)`, and `batched_nms` for several classes or images. Without it, the overlaps of
all pairs at once, read once:
```python
def suppress(boxes, scores, limit):
    order = scores.argsort(descending=True)
    ranked = boxes[order]
    corner, end = ranked[:, :2], ranked[:, 2:]
    sides = (torch.minimum(end[:, None], end) - torch.maximum(corner[:, None], corner)).clamp(min=0)
    common = sides[..., 0] * sides[..., 1]
    areas = (end - corner).prod(dim=1)
    overlaps = (common / (areas[:, None] + areas - common) > limit).numpy()
    dropped = np.zeros(len(ranked), dtype=bool)
    kept = []
    for i in range(len(ranked)):
        if not dropped[i]:
            kept.append(i)
            dropped |= overlaps[i]
    return order[kept]
```

## Fix safety
No fix is applied: boxes of equal score may come in another order, and overlaps at the threshold may round differently.

## References
- torchvision, `torchvision.ops.nms`: https://docs.pytorch.org/vision/stable/generated/torchvision.ops.nms.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.place import Place
from pyrometer.quantity import format_percent
from pyrometer.rules.host.patterns.spending import is_certain, removal
from pyrometer.rules.host.patterns.suppression import Suppression, suppressions
from pyrometer.rules.joining import module_of
from pyrometer.rules.places import spoken
from pyrometer.rules.rule import Case, Findings, Limit, Module, declare

if TYPE_CHECKING:
    from pyrometer.host.profile import HostProfile

RULE = declare(
    code="PYR129",
    severity="warning",
    fix_class="tolerance",
    limits=(Limit("min_share", 0.1, "of the step: less does not repay another dependency"),),
)


@RULE.in_evidence("host", "source")
def explain(case: Case) -> Findings:
    """Such loops, with what all that runs in them takes."""
    assert case.host is not None
    for module in case.modules:
        for suppression in suppressions(module):
            share = _share(case, case.host, module, suppression)
            if share < case.limit(RULE, "min_share") or not is_certain(case.host, share):
                continue
            place = Place(file=module.path, line=suppression.loop.lineno, function=suppression.function.name)
            yield RULE.finding(
                message=f"boxes are suppressed in Python{spoken(place)}, which takes {format_percent(share)} of the step",
                where=place,
                evidence={"share": share},
                links=["/host/loops"],
                cost=case.cost_of(share, "samples of the host's time in the loop"),
                gain=removal(case.host, share, stays=0.15),
                confidence="high",
                advice="Call `torchvision.ops.nms(boxes, scores, limit)`, of several classes or images at once `batched_nms`; without torchvision "
                "compute the overlaps of all pairs by one broadcast expression, read them once, and let the loop look them up.",
                resource="launch",
            )


def _share(case: Case, profile: HostProfile, module: Module, suppression: Suppression) -> float:
    """What the loop takes with all that it calls: as its rounds were sampled, else its lines."""

    def is_within(file: str | None, line: int | None) -> bool:
        return suppression.holds(line or 0) and module_of(file, case.modules) is module

    loops = [loop.total_s for loop in profile.loops if is_within(loop.where.file, loop.where.line)]
    lines = sum(line.own_s for line in profile.lines if is_within(line.where.file, line.where.line))
    return profile.share(max([*loops, lines]))
