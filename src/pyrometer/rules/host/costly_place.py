"""One place of the program takes a good part of the step, and no other rule says why.

## What it does
Adds up, for each function of the user's, what its lines spend outside of operators, by samples of the host's time, and what operators
that networks seldom spend their time in take there, by the trace: sorting, decompositions, clones, random numbers. It speaks where one
function has a good part of the step in one of these, and is left out where another rule accounts for that time.

## Why it costs
It is time in which the network's own operators do not run. What it is spent on says which change helps: calling it less often, doing
it beforehand or in another thread, or giving it to one operator on whole tensors.

## Example
```python
def forward(self, x):
    key = hashlib.sha256(x.numpy().tobytes()).hexdigest()
    return self.cache.get(key) or self.model(x)
```

## Use instead
```python
def forward(self, x, key):  # the request says which one it is
    return self.cache.get(key) or self.model(x)
```

## Fix safety
No fix is applied: only the program knows what the place is for.

## References
- PyTorch, Performance Tuning Guide: https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pyrometer.place import Place
from pyrometer.quantity import Ratio, format_percent
from pyrometer.rules.data.patterns.preparing import advice_on_samples
from pyrometer.rules.host.patterns.spending import (
    MECHANISMS,
    MOST_LINES,
    is_certain,
    names_of,
    removal,
    spending,
    spread,
)
from pyrometer.rules.joining import function_at
from pyrometer.rules.kernels.patterns.operators import on_device
from pyrometer.rules.places import place_of, spoken
from pyrometer.rules.rule import Case, Findings, Limit, declare
from pyrometer.rules.untraced import untraced
from pyrometer.source.words import words

if TYPE_CHECKING:
    from pyrometer.host.profile import HostLeaf, HostLine, LeafKind
    from pyrometer.trace.reporting.totals import LineOp, LineTotal

RULE = declare(
    code="PYR127",
    severity="warning",
    scope="general",
    fix_class="semantic",
    limits=(Limit("min_share", 0.15, "of the step: less is seldom the first thing to change"),),
)

STAYS = 0.2
"""Of what the place takes, at worst: a step seldom needs all of it, and seldom nothing."""

OF_NETWORKS: frozenset[LeafKind] = frozenset({"operator", "backward", "allocation", "data"})
"""Kinds of leaves that the trace, or rules about loading, speak of."""

SELDOM = frozenset(
    f"aten::{name}"
    for name in words("""
        sort argsort msort kthvalue median mode quantile unique _unique _unique2 unique_consecutive unique_dim nonzero isin searchsorted bucketize
        cholesky_inverse triangular_solve geqrf orgqr ormqr inverse cholesky svd qr matrix_exp
        clone contiguous repeat repeat_interleave roll flip rot90 cat stack tril triu arange linspace eye one_hot
        normal_ uniform_ random_ randperm multinomial bincount histc histogram cdist _cdist_forward
        cumsum cumprod logcumsumexp cummax cummin combinations cartesian_prod kron block_diag
        """)
)
"""Operators that networks need, and seldom spend much time in."""

ALGEBRA = ("aten::linalg_", "aten::_linalg_")
"""Begin the names of decompositions and solvers, of which the same holds."""

CONVERSIONS = frozenset(
    f"torch.{name}" for name in words("tensor as_tensor asarray Tensor FloatTensor DoubleTensor LongTensor")
)
"""Calls that make a tensor of other objects."""

OF_CONVERSIONS = (
    "Making a tensor of a list or tuple reads it object by object, and arrays within it number by number: make one array of it first "
    "(`torch.from_numpy(np.stack(arrays))`; `torch.stack` for tensors), or keep the data in one array or tensor from the beginning and index that."
)
BY_KIND = {
    "conversion": OF_CONVERSIONS,
    "synchronisation": "Read values seldom and many at once: keep them in tensors and read one tensor at the end of the step or every N steps.",
    "garbage": "Let Python collect seldom: `gc.freeze()` after set-up, `gc.disable()` around the steps with a `gc.collect()` every N of them, "
    "and no `gc.collect()` in the step.",
    "import": "Import at the top of the module.",
    "hash": "Take a key that is there already, such as an index or a name, or hash once when the data is made.",
}
OTHERWISE = (
    "Call it less often, do it once beforehand or in the loader's workers, or let one operator on whole tensors do it; the lines in the evidence "
    "say where to begin."
)


@RULE.in_evidence("host")
def explain(case: Case) -> Findings:
    """Functions with much time outside of operators."""
    profile = case.host
    assert profile is not None
    lines: dict[tuple[str | None, str | None], list[HostLine]] = defaultdict(list)
    for line in profile.lines:
        lines[line.where.file, line.where.function].append(line)
    spoken_of = frozenset().union(
        *(kinds for kinds in MECHANISMS if spending(case, kinds, case.limit(RULE, "min_share")))
    )
    for together in lines.values():
        leaves = [leaf for line in together for leaf in line.leaves if _is_told(leaf, spoken_of)]
        share = profile.share(sum(leaf.seconds_per_step for leaf in leaves))
        if share < case.limit(RULE, "min_share") or not is_certain(profile, share):
            continue
        line = max(
            together, key=lambda line: sum(leaf.seconds_per_step for leaf in line.leaves if leaf in leaves)
        )
        place = place_of(case, line.where)
        called = ", ".join(
            f"{_called(name)} ({format_percent(profile.share(seconds))})"
            for name, seconds in names_of(leaves)
        )
        yield RULE.finding(
            message=f"{format_percent(share)} of the step goes to {called}{spoken(place)}, which are no layers of a network",
            where=place,
            evidence={"share": share, "lines": [line.where.text for line in together[:MOST_LINES]]},
            links=[f"/host/lines/{profile.lines.index(line)}"],
            cost=case.cost_of(share, "samples of the host's time in the lines of the function"),
            gain=removal(profile, share, stays=STAYS),
            confidence="medium",
            advice=advice_on_samples(case, line.where) or _advice(leaves),
        )


@RULE.in_evidence("trace")
def explain_operators(case: Case) -> Findings:
    """Functions with much time in operators that networks seldom spend it in."""
    trace = case.trace
    if trace is None or not trace.span_ns:
        return
    told = (
        {(finding.where.file, finding.where.function) for finding in explain(case)}
        if case.host is not None
        else set()
    )
    for number, function in enumerate(trace.top_lines):
        seldom = [op for op in function.top_ops if _is_seldom(op.name)]
        share = min(_sampled_most(case, function), sum(_spent_ns(case, op) for op in seldom) / trace.span_ns)
        if share < case.limit(RULE, "min_share"):
            continue
        op = max(seldom, key=lambda op: _spent_ns(case, op))
        place = _line_of(case, function, op.name)
        if (place.file, place.function) in told:
            continue
        yield RULE.finding(
            message=f"{', '.join(op.name for op in seldom)} take{'s' if len(seldom) == 1 else ''} {format_percent(share)} of the time"
            f"{spoken(place)}",
            where=place,
            evidence={"share": share, "operators": [op.name for op in seldom]},
            links=[f"/trace/top_lines/{number}"],
            cost=case.cost_of(share, "time of these operators in the function, in the trace"),
            gain=untraced(case, share).gain(
                f"removal: these operators; at worst {format_percent(STAYS)} of them stay", worst=1 - STAYS
            ),
            confidence="medium",
            advice="Ask whether each step needs it: what does not change can be kept, what only some rows need can be done on those, a copy can "
            "be avoided by making the tensor in its final type, device and layout.",
            resource=f"op:{op.name}",
        )


def _is_seldom(op: str) -> bool:
    return op in SELDOM or (op.startswith(ALGEBRA) and op != "aten::linalg_vector_norm")


def _is_told(leaf: HostLeaf, spoken_of: frozenset[LeafKind]) -> bool:
    """Whether a leaf is none of a network's own operators, and of no kind that another rule speaks of."""
    if leaf.kind in OF_NETWORKS:
        return (
            leaf.name in CONVERSIONS
            or _is_seldom(f"aten::{leaf.name.rpartition('.')[2]}")
            or leaf.name.startswith("torch.linalg.")
        )
    return leaf.kind not in spoken_of


def _advice(leaves: list[HostLeaf]) -> str:
    """What to do about the kind with the most time."""
    totals: dict[str, float] = defaultdict(float)
    for leaf in leaves:
        totals["conversion" if leaf.name in CONVERSIONS else leaf.kind] += leaf.seconds_per_step
    return BY_KIND.get(max(totals, key=lambda kind: totals[kind]), OTHERWISE)


def _spent_ns(case: Case, op: LineOp) -> int:
    assert case.trace is not None
    return op.device_ns if on_device(case.trace) else op.host_ns


def _sampled_most(case: Case, function: LineTotal) -> Ratio:
    """What samples leave open for a function: a single call of a traced step may have waited for another program."""
    found = function_at(function, case.modules)
    if case.host is None or case.trace is None or found is None or on_device(case.trace):
        return 1.0
    own_s = sum(line.own_s for line in case.host.lines if function_at(line.where, case.modules) == found)
    return spread(case.host, case.host.share(own_s)).most


def _line_of(case: Case, function: LineTotal, op: str) -> Place:
    """The line of a function that the operator's time was sampled in, else its most expensive one, else where it begins."""
    found = function_at(function, case.modules)
    lines = [] if case.host is None or found is None else case.host.lines
    here = [line for line in lines if function_at(line.where, case.modules) == found]
    if not here:
        return place_of(case, function, op=op)
    name = op.rpartition("::")[2].strip("_")
    calling = [line for line in here if any(leaf.name.rpartition(".")[2] == name for leaf in line.leaves)]
    line = max(calling or here, key=lambda line: line.own_s)
    return place_of(case, line.where, op=op)


def _called(name: str) -> str:
    return "Python" if name == "python" else f"`{name}`"
