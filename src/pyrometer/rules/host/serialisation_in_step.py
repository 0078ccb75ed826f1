"""Each step serialises or deep-copies objects: saving, pickling, JSON, `deepcopy`.

## What it does
Adds up what the user's lines spend in `torch.save`, `pickle`, `json` and `copy`, by samples of the host's time, and speaks where
that is a good part of the step.

## Why it costs
Saving copies every tensor of the state and writes it, whether anything has changed or not; pickling, JSON and `copy.deepcopy` walk
over every object in Python, at about a microsecond for each.

## Example
```python
for inputs, targets in loader:
    train_step(inputs, targets)
    torch.save(model.state_dict(), "latest.pt")
```

## Use instead
```python
for step, (inputs, targets) in enumerate(loader):
    train_step(inputs, targets)
    if step % 1000 == 999:
        torch.save(model.state_dict(), "latest.pt")
torch.save(model.state_dict(), "latest.pt")
```
Of a nested structure copy what is changed, and of a model its `state_dict` alone, into tensors that are kept: `kept.copy_(weight)`.

## Fix safety
No fix is applied: how much work may be lost, and who changes a copy, is for the program to say.

## References
- PyTorch, Saving and loading models: https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
- Python, `copy.deepcopy`: https://docs.python.org/3/library/copy.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.rules.data.patterns.preparing import advice_on_samples
from pyrometer.rules.host.patterns.spending import SERIALISATION, spending, spending_finding
from pyrometer.rules.rule import Case, Findings, Limit, declare

if TYPE_CHECKING:
    from pyrometer.host.profile import HostLine, LeafKind

RULE = declare(
    code="PYR121",
    severity="warning",
    fix_class="exact",
    limits=(Limit("min_share", 0.15, "of the step: less is seldom the first thing to change"),),
)

BY_KIND = {
    "torch.save": "Save once every N steps and at the end; where each state counts, copy it to host memory and save it in a thread.",
    "pickle": "Do it once every N steps or outside of the step; of large tensors and arrays hand on the buffer itself, such as in shared "
    "memory.",
    "json": "Do it once every N steps or outside of the step; where text must be read or written in each, keep what does not change as it "
    "is, and use a faster library such as `msgspec` or `orjson`.",
    "copy": "Copy only what is changed afterwards: a new list or dictionary of the parts that change, or `clone()` of single tensors into "
    "buffers that are kept.",
}


STAYS = {"json": 0.5}
"""Part of its time that is left at worst: text that each request brings is read by a faster library, if at all."""

SELDOM_STAYS = 0.15
"""Of other kinds, which need not be done in each step."""


def _dearest_kind(line: HostLine) -> LeafKind:
    """What takes the most of a line."""
    return next(leaf.kind for leaf in line.leaves if leaf.kind in SERIALISATION)


@RULE.in_evidence("host")
def explain(case: Case) -> Findings:
    """Where all of it together takes a good part of the step."""
    spent = spending(case, SERIALISATION, case.limit(RULE, "min_share"))
    if spent is not None:
        kind = _dearest_kind(spent.line)
        yield spending_finding(
            RULE,
            case,
            spent,
            what="Serialising or copying objects",
            stays=STAYS.get(kind, SELDOM_STAYS),
            advice=advice_on_samples(case, spent.line.where) or BY_KIND[kind],
        )
