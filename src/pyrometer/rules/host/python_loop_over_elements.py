"""A loop goes over elements in Python and takes a good part of the step.

## What it does
Takes the loops and comprehensions of the user's in which samples of the host's time were found, and speaks where one with many
rounds takes a good part of the step and spends it in the interpreter: on numbers, lists and dictionaries, on scalars of NumPy, or
on reading a tensor element by element. It says what the loop goes over and how many rounds a step has.

## Why it costs
A round of Python costs a tenth of a microsecond for each operation on a number, ten times that where the number is a scalar of
NumPy, and again more where it is read from a tensor. A call on a whole array does thousands of them in that time.

## Example
```python
def smallest_distance(points, others):
    result = np.zeros(len(points), dtype=np.float32)
    for i, p in enumerate(points):
        best = float("inf")
        for q in others:
            best = min(best, abs(p[0] - q[0]) + abs(p[1] - q[1]))
        result[i] = best
    return torch.from_numpy(result)
```

## Use instead
```python
def smallest_distance(points, others):
    return torch.cdist(points, others, p=1).amin(dim=1)
```

## Fix safety
No fix is applied: sums over whole arrays may round differently.

## References
- NumPy, Broadcasting: https://numpy.org/doc/stable/user/basics.broadcasting.html
- PyTorch, Broadcasting semantics: https://docs.pytorch.org/docs/stable/notes/broadcasting.html
"""

from __future__ import annotations

from pyrometer.rules.data.patterns.preparing import advice_on_samples
from pyrometer.rules.host.patterns.loop_runs import LoopRun, loop_finding, loop_runs
from pyrometer.rules.rule import Case, Findings, Limit, declare

RULE = declare(
    code="PYR122",
    severity="warning",
    fix_class="tolerance",
    limits=(
        Limit("min_share", 0.15, "of the step: less is seldom the first thing to change"),
        Limit(
            "min_python", 0.5, "of the loop's time: where operators take more of it, they are what to look at"
        ),
    ),
)

BY_KIND = {
    "synchronisation": "Read the tensor once, before the loop (`values = t.tolist()`), or better leave the numbers in tensors: compare, "
    "select and add up whole ones.",
    "numpy": "Write it for whole arrays: each access to one element makes an object; where rounds depend on each other, go over "
    "`array.tolist()`, or compile the loop with Numba.",
}
SEARCHING = (
    "Each `list.index` goes through the list from its beginning, and so does `in`: make a dict of places once, "
    "`{value: place for place, value in enumerate(values)}`, and look each up in that."
)
OTHERWISE = (
    "Write it for whole tensors: comparisons, `where`, `gather`, `scatter_add`, `cumsum`, `bincount` or `unique` take the place of most "
    "loops. Where rounds depend on each other, compile the loop (Numba, C++), or move it out of the step into the loader's workers."
)


@RULE.in_evidence("host")
def explain(case: Case) -> Findings:
    """Loops that are mostly Python."""
    for run in loop_runs(case, case.limit(RULE, "min_share")):
        if run.element is None and run.by_python >= case.limit(RULE, "min_python"):
            yield loop_finding(
                RULE,
                case,
                run,
                what="runs in Python",
                advice=advice_on_samples(case, run.where) or _advice(run),
            )


def _advice(run: LoopRun) -> str:
    """What to do about the kind of work that takes the most of the loop, the interpreter's own aside."""
    seconds: dict[str, float] = dict.fromkeys(BY_KIND, 0.0)
    for leaf in run.leaves:
        seconds[leaf.kind] = seconds.get(leaf.kind, 0.0) + leaf.seconds_per_step
    if sum(leaf.seconds_per_step for leaf in run.leaves if leaf.name == "list.index") >= run.total_s / 4:
        return SEARCHING
    kinds = [kind for kind in BY_KIND if seconds[kind] >= run.total_s / 4]
    return BY_KIND[max(kinds, key=lambda kind: seconds[kind])] if kinds else OTHERWISE
