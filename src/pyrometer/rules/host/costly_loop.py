"""A loop takes a good part of the step, and no other rule says why.

## What it does
Takes the loops and comprehensions of the user's in which samples of the host's time were found, and speaks where one with many
rounds takes a good part of the step, however long its rounds are. It is left out where another rule accounts for that time, and
where the rounds are work of layers (matrix products, convolutions, attention), which is what a network is for.

## Why it costs
A round that goes over whole tensors reads all of them again: a matrix of counts for 19 classes, made by 361 passes over the same
pixels, took 66 % of an evaluation, of which one `bincount` leaves nothing to speak of.

## Example
```python
def count_pairs(truth, guess, classes):
    table = torch.zeros(classes, classes, dtype=torch.long)
    for t in range(classes):
        for g in range(classes):
            table[t, g] = ((truth == t) & (guess == g)).sum()
    return table
```

## Use instead
```python
def count_pairs(truth, guess, classes):
    pairs = truth * classes + guess
    return torch.bincount(pairs.flatten(), minlength=classes * classes).view(classes, classes)
```

## Fix safety
No fix is applied: sums in another order may round differently, and only the program knows what the rounds share.

## References
- PyTorch, `torch.bincount`: https://docs.pytorch.org/docs/stable/generated/torch.bincount.html
- PyTorch, `torch.Tensor.index_add_`: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_add_.html
"""

from __future__ import annotations

import re

from pyrometer.rules.host.patterns.loop_runs import LoopRun, loop_finding, loop_runs
from pyrometer.rules.kernels.patterns.layers import layer_share
from pyrometer.rules.rule import Case, Findings, Limit, declare

RULE = declare(
    code="PYR133",
    severity="warning",
    scope="general",
    fix_class="tolerance",
    limits=(
        Limit("min_share", 0.15, "of the step: less is seldom the first thing to change"),
        Limit("max_layers", 0.5, "of the loop's operators: where layers do more, it is a network at work"),
    ),
)

PASSES_STAY = 0.4
"""Of the work of operators at worst: rounds mostly read the same tensors, which one pass reads once."""

MOSTLY = 0.25
"""Of a loop's time in backward passes, from where on these are what to look at."""

ONE_GRADIENT = (
    "Differentiate all rounds at once: `torch.func.vmap(torch.func.grad(loss_of_one), in_dims=(None, 0, 0))` gives the gradients of each sample, "
    "and a sum of losses needs one backward pass."
)
APART = (
    "Take out of the loop what is the same in all rounds, and give whole tensors to one operator for all of them: `bincount`, `index_add_`, "
    "`scatter_add_` or `one_hot` where rounds count or sum by class or group, broadcasting with one more dimension where they compare, "
    "`torch.vmap` for the rest."
)
CARRIED = (
    "The rounds depend on each other: do before the loop, for all of them, what does not; keep less of it in the step, or compile what the "
    "loop calls."
)


@RULE.in_evidence("host")
def explain(case: Case) -> Findings:
    """Loops that are no network at work."""
    for run in loop_runs(case, case.limit(RULE, "min_share")):
        backward = _backward(run)
        whole = run._replace(
            operators=run.operators + backward,
            elsewhere=run.elsewhere - backward,
            work=run.work if _has_own_elements(run) else min(run.work, PASSES_STAY),
        )
        if whole.operators + whole.by_python < whole.elsewhere:
            continue  # which other rules speak of
        if _layers(case, whole) < case.limit(RULE, "max_layers"):
            yield loop_finding(
                RULE,
                case,
                whole,
                what="differentiates in each round"
                if backward >= MOSTLY
                else "goes over its work round by round",
                advice=ONE_GRADIENT if backward >= MOSTLY else CARRIED if run.is_carried else APART,
            )


def _has_own_elements(run: LoopRun) -> bool:
    """Whether each round works on an element of its own, so that all of the work stays; rounds of numbers may read the same."""
    return run.element is not None or not re.match(r"range\b|enumerate\(range\b", run.over)


def _backward(run: LoopRun) -> float:
    """The part of its time in backward passes, unless its rounds are steps of training, which depend on each other."""
    if any(leaf.name.endswith(("optimizer step", ".step")) for leaf in run.leaves):
        return 0.0
    spent = sum(leaf.seconds_per_step for leaf in run.leaves if leaf.kind == "backward")
    return min(run.elsewhere, spent / run.total_s)


def _layers(case: Case, run: LoopRun) -> float:
    """The part of the loop's operators that is work of layers, by the trace of its function."""
    if case.trace is None or run.traced is None:
        return run.operators  # they may be
    share = layer_share(case.trace, run.traced, run.traced.function)
    return 0.0 if share is None else share
