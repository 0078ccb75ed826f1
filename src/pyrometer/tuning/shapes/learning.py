"""From observed sizes to a plan for all axes."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from pyrometer.errors import InputError
from pyrometer.record import from_json
from pyrometer.tuning.shapes.axes import Axes, Sizes
from pyrometer.tuning.shapes.grid import plan_each, plan_grid
from pyrometer.tuning.shapes.planning import plan_edges
from pyrometer.tuning.shapes.policy import BucketPolicy
from pyrometer.tuning.shapes.record import AxisPlan, BucketPlan
from pyrometer.tuning.shapes.sample import Shapes, read_sample, sizes_in


def first_plan(
    axes: Axes,
    policy: BucketPolicy,
    sample: str | Path | Iterable[Shapes] | None = None,
    plan: BucketPlan | str | Path | None = None,
) -> tuple[BucketPlan | None, Counter[Sizes]]:
    """The plan that is given, learned from a sample, or made of edges given by hand; None where calls are to be learned from.

    Returns:
        The plan, and how often each combination of sizes is in the sample.

    Raises:
        InputError: more than one of these, a plan of other sizes, or a file that cannot be read.
    """
    if plan is not None and axes.edges:
        raise InputError("plan: the edges are given in dims already; give one of them")
    if sample is not None and plan is not None:
        raise InputError("sample and plan: give one of them; a plan is what is learned from a sample")
    if plan is not None:
        known = plan if isinstance(plan, BucketPlan) else _read_plan(plan)
        names = tuple(axis.name for axis in known.axes)
        if names != axes.names:
            raise InputError(f"plan: is for {', '.join(names)}, but dims declare {', '.join(axes.names)}")
        return known, Counter()
    if sample is None:
        return given_plan(axes, {}) if axes.edges else None, Counter()
    seen = sizes_in(axes, read_sample(sample) if isinstance(sample, (str, Path)) else sample)
    return given_plan(axes, seen) if axes.edges else learn_plan(axes, seen, policy), seen


def _read_plan(path: str | Path) -> BucketPlan:
    try:
        return from_json(BucketPlan, Path(path).read_bytes())
    except OSError as error:
        raise InputError(
            f"plan {path}: cannot be read ({error}); legal is a file that save() wrote"
        ) from error


def learn_plan(axes: Axes, seen: Mapping[Sizes, int], policy: BucketPolicy) -> BucketPlan:
    """The cheapest edges for the sizes that were seen.

    One size is planned exactly; two jointly as a grid (`plan_grid` says whether that is exact); more each for itself.

    Raises:
        InputError: nothing was seen.

    >>> axes = Axes(("length",), {"x": {1: "length"}}, {})
    >>> learn_plan(axes, {(10,): 3, (60,): 1}, BucketPolicy(max_graphs=2)).axes[0].edges
    [10, 60]
    """
    if not seen:
        raise InputError("sizes: none were seen; a plan needs at least one call")
    largest = tuple(
        max(policy.cover.get(name, 0), *(sizes[place] for sizes in seen))
        for place, name in enumerate(axes.names)
    )
    edges = _edges(axes, seen, policy, largest)
    planned = [AxisPlan(name=name, edges=own) for name, own in zip(axes.names, edges, strict=True)]
    plan = with_cells(BucketPlan(axes=planned, num_samples=sum(seen.values())), seen)
    furthest = [own[-1] for own in edges]
    if furthest in plan.cells:
        return plan
    return msgspec.structs.replace(plan, cells=[*plan.cells, furthest] if policy.cover else plan.cells)


def given_plan(axes: Axes, seen: Mapping[Sizes, int]) -> BucketPlan:
    """The plan of edges that are given by hand; without a sample any combination of them may be needed.

    >>> given_plan(Axes(("n",), {"x": {1: "n"}}, {}, edges={"n": [8, 16]}), {}).cells
    [[8], [16]]
    """
    planned = [AxisPlan(name=name, edges=axes.edges[name]) for name in axes.names]
    plan = BucketPlan(axes=planned, num_samples=sum(seen.values()))
    if seen:
        return with_cells(plan, seen)
    cells = [list(cell) for cell in itertools.product(*(axis.edges for axis in planned))]
    return msgspec.structs.replace(plan, cells=cells)


def with_cells(plan: BucketPlan, seen: Mapping[Sizes, int]) -> BucketPlan:
    """The plan with the combinations of edges that some sizes need, the most frequent first, and their padding."""
    used = calls_by_cell(plan, seen)
    real = sum(count * volume(sizes) for sizes, count in seen.items() if plan.edges(sizes) is not None)
    padded = sum(count * volume(cell) for cell, count in used.items())
    return BucketPlan(
        axes=plan.axes,
        cells=[list(cell) for cell, _ in used.most_common()],
        num_samples=plan.num_samples,
        padding_share=1 - real / padded if padded else None,
    )


def calls_by_cell(plan: BucketPlan, seen: Mapping[Sizes, int]) -> Counter[Sizes]:
    """How many calls of a sample each combination of edges serves; those beyond the last edge are left out."""
    calls = Counter[Sizes]()
    for sizes, count in seen.items():
        cell = plan.edges(sizes)
        if cell is not None:
            calls[cell] += count
    return calls


def volume(sizes: Sizes) -> int:
    """The number of elements that sizes span.

    >>> volume((2, 3))
    6
    """
    product = 1
    for size in sizes:
        product *= size
    return product


def _edges(axes: Axes, seen: Mapping[Sizes, int], policy: BucketPolicy, largest: Sizes) -> list[list[int]]:
    align = tuple(policy.alignment(name) for name in axes.names)
    if len(align) == 1:
        plan = plan_edges(
            {sizes[0]: count for sizes, count in seen.items()},
            policy.max_graphs,
            step_cost=policy.step_cost,
            align=align[0],
            cover=largest[0],
            compile_cost=policy.compile_cost,
            expected_calls=policy.expected_calls,
        )
        return [plan.edges]
    covered = {**seen, largest: seen.get(largest, 1)}
    if len(align) == 2:
        pairs = {(sizes[0], sizes[1]): count for sizes, count in covered.items()}
        grid = plan_grid(pairs, policy.max_graphs, step_cost=policy.step_cost, align=(align[0], align[1]))
        return [grid.rows, grid.columns]
    return plan_each(Counter(covered).elements(), policy.max_graphs, align=align)
