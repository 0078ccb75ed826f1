"""The step is launch-bound: it consists of very many tiny kernels or operators.

## What it does
Counts kernels below 10 µs, or on a CPU operators that take little more than dispatch does on this machine (five times an operator
that computes nothing, at least 10 µs), and the places that issue them. It speaks when they are most
of all, many per step, and cost a good part of the time, and names the sequences of them that come again and again: these are
the candidates for fusion.

## Why it costs
Each operator costs the host a few microseconds of dispatch and each kernel a launch, whatever its size, and each reads from
memory what the one before has just written. Standardising 400 rows one by one took about 200 times as long as all of
them at once on a CPU core.

## Example
```python
rows = []
for i in range(x.shape[0]):
    row = x[i]
    rows.append((row - row.mean()) / (row.std() + 1e-6))
y = torch.stack(rows)
```

## Use instead
Work on whole tensors; let `torch.compile` fuse what remains, and use a fused optimizer.
```python
y = (x - x.mean(dim=1, keepdim=True)) / (x.std(dim=1, keepdim=True) + 1e-6)
```

## Fix safety
No fix is applied: reductions over other shapes and fused kernels may round differently.

## References
- PyTorch, Performance Tuning Guide, "Fuse operations": https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
- PyTorch, `torch.compile`: https://docs.pytorch.org/docs/stable/generated/torch.compile.html
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyrometer.advice import Cost, Gain
from pyrometer.place import Place
from pyrometer.quantity import format_percent, format_seconds
from pyrometer.rules.host.patterns.recurrent_cells import OVER_TIME, layer_for
from pyrometer.rules.host.patterns.starvation import short_share, starvation
from pyrometer.rules.host.patterns.waits import OPTIMIZER
from pyrometer.rules.joining import function_at
from pyrometer.rules.kernels.patterns.updates import SAVED
from pyrometer.rules.places import place_of, spoken
from pyrometer.rules.rule import Case, Findings, Limit, declare
from pyrometer.rules.sequences import SHORT_NS, drawn, is_tiny, short_ns, told
from pyrometer.text import one_line
from pyrometer.trace.naming.optimizers import FUSED, MARK

if TYPE_CHECKING:
    from pyrometer.trace.records.device import CallSite, Dispatch
    from pyrometer.trace.records.gains import Recoverable
    from pyrometer.trace.records.rank import RankReport
    from pyrometer.trace.reporting.totals import Sequence

RULE = declare(
    code="PYR111",
    severity="warning",
    scope="symptom",
    fix_class="tolerance",
    lever="compile",
    limits=(
        Limit(
            "min_short_share", 0.5, "fewer tiny kernels than others: the others are the better place to look"
        ),
        Limit(
            "min_kernels_per_step", 300, "below that all of them together cost about a millisecond to launch"
        ),
        Limit("min_ops_per_step", 3000, "below that dispatch costs a few milliseconds per step on a CPU"),
        Limit("min_share", 0.1, "of the time: less does not repay rewriting or compiling"),
    ),
)

READY_MADE = frozenset({"aten::gru", "aten::lstm", "aten::rnn_tanh", "aten::rnn_relu"})
"""Operators of layers that go over time in C++, step by step, in operators of their own."""

MOST_SITES = 3
MOST_SEQUENCES = 3


@dataclass(frozen=True)
class Tiny:
    """The tiny work of one trace."""

    what: str
    per_step: float
    number_share: float
    share: float
    sure_share: float
    """Without what lies between them."""
    method: str
    link: str
    sites: list[CallSite]


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """Tiny kernels, or tiny operators where there is no device."""
    tiny = _kernels(case) or _operators(case)
    if tiny is None or tiny.share < case.limit(RULE, "min_share"):
        return
    place = place_of(case, tiny.sites[0].where) if tiny.sites else Place()
    named = [
        f"{one_line(site.name)} {site.calls:,}×{spoken(place_of(case, site.where))}"
        for site in tiny.sites[:MOST_SITES]
    ]
    fusible = _fusible(case)
    update = _update(case, tiny)
    updates = update is not None or _updates(case, tiny.sites)
    if updates and not _can_be_fused(case):
        return
    yield RULE.finding(
        message=(
            f"{tiny.per_step:,.0f} {tiny.what}{case.per_step} are below {format_seconds(short_ns(case.trace) * 1e-9)}, {format_percent(tiny.number_share)} of all; they cost "
            f"{format_percent(tiny.share)} of the time, most of it{spoken(place) or ' in ' + one_line(place.op or 'many places')}"
        ),
        where=place,
        evidence={
            "short_per_step": tiny.per_step,
            "short_share": tiny.number_share,
            "sites": named,
            "candidates": [told(case, sequence) for _, sequence in fusible[:MOST_SEQUENCES]],
        },
        links=[tiny.link, *(f"/trace/sequences/{i}" for i, _ in fusible[:MOST_SEQUENCES])],
        cost=Cost(
            seconds_per_step=None if case.step_s is None else tiny.share * case.step_s,
            share=tiny.share,
            method=tiny.method,
        ),
        gain=_gain_of_removal(tiny) if update is None else _gain_of_fusing(update),
        lever="fused_optimizer" if updates else "compile",
        confidence="high" if tiny.sites and place.file is not None else "medium",
        advice=(
            "Most of them update parameters: build the optimizer with `fused=True`, or with `foreach=True` where that is not to be had."
            if updates
            else _layer(case, place) or _advice(place, fusible)
        ),
        rewrite=None,
        resource="optimizer" if updates and tiny.what == "operators" else "launch",
    )


def _gain_of_removal(tiny: Tiny) -> Gain:
    return Gain(
        ratio_low=1 - tiny.share,
        ratio_high=1 - tiny.sure_share / 2,
        method="removal of the tiny work; worst case half of it",
    )


def _update(case: Case, tiny: Tiny) -> Recoverable | None:
    """The update tensor by tensor that most of the tiny work belongs to, as the trace's replay tried it."""
    report = case.trace
    if report is None:
        return None
    update = next((gain for gain in report.recoverable if gain.kind == "update"), None)
    is_most = update is not None and 2 * update.critical_ns > tiny.share * report.span_ns
    return update if is_most else None


def _gain_of_fusing(update: Recoverable) -> Gain:
    """The replay took the update to be twice as fast: what fusing saved elsewhere, of twice what that won."""
    whole = min(1.0, 2 * (1 - update.ratio))
    best, worst = SAVED[update.name]
    return Gain(
        ratio_low=1 - best * whole,
        ratio_high=1 - worst * whole,
        method="replay of the trace without most of the update, as fusing saved it on one core",
    )


def _fusible(case: Case) -> list[tuple[int, Sequence]]:
    """Sequences of tiny work outside of the optimizer, with their rows; the largest gain first."""
    found = enumerate(case.trace.sequences) if case.trace is not None else ()
    return [
        (i, sequence)
        for i, sequence in found
        if is_tiny(sequence, case.trace) and sequence.where.phase != OPTIMIZER
    ]


def _layer(case: Case, place: Place) -> str:
    """What to do where the work is that of a recurrent cell in a loop over time."""
    found = function_at(place, case.modules)
    loops = [node for node in ast.walk(found[1]) if isinstance(node, ast.For)] if found is not None else []
    layers = [layer for loop in loops if found is not None and (layer := layer_for(found[0], loop))]
    return OVER_TIME.format(layer=layers[0]) if layers else ""


def _advice(place: Place, fusible: list[tuple[int, Sequence]]) -> str:
    advice = f"Work on whole tensors instead of many small ones{spoken(place)}, or compile what issues them so that they are fused"
    if not fusible:
        return f"{advice}."
    first = fusible[0][1]
    if first.kind == "repeated":
        return f"{advice}: {drawn(first)} is one operator on different data, {first.count:,} times, and can work on all at once."
    return f"{advice}: {drawn(first)} comes {first.count:,} times and can be one kernel each."


def _updates(case: Case, sites: list[CallSite]) -> bool:
    """Whether most of the work updates parameters: by the marks of phases, or by the kernels in the optimizer's own."""
    calls = [(site.calls, site.where.phase == OPTIMIZER) for site in sites]
    if 2 * sum(number for number, is_update in calls if is_update) > sum(number for number, _ in calls):
        return True
    launches = case.trace.launches.device if case.trace is not None else None
    if case.trace is None or launches is None:
        return False
    phase = next((phase for phase in case.trace.phases.phases if phase.name == OPTIMIZER), None)
    if phase is None or phase.device_ns >= SHORT_NS * phase.num_kernels:
        return False
    return 2 * phase.num_kernels > launches.num_short


def _can_be_fused(case: Case) -> bool:
    """Whether the update has a fused form that is not used yet; of others it is not known that anything helps."""
    optimizer = case.program.optimizer if case.program is not None else None
    if optimizer is not None:
        return optimizer.type_name in FUSED and not optimizer.fused
    nodes = case.trace.call_tree if case.trace is not None else []
    named = {mark[1] for node in nodes if (mark := MARK.match(node.name))}
    return not named or bool(named & FUSED)


def _kernels(case: Case) -> Tiny | None:
    report, starved = case.trace, starvation(case)
    if report is None or not report.span_ns or report.launches.device is None:
        return None
    launches, short = report.launches.device, short_share(report)
    per_step = launches.num_short / case.num_traced_steps
    if short < case.limit(RULE, "min_short_share") or per_step < case.limit(RULE, "min_kernels_per_step"):
        return None
    graphs = launches.graphs
    at_once = graphs is not None and graphs.num_work > launches.num_work / 2
    waits = 0.0 if at_once or starved is None else starved.share * short  # a graph is waited for once
    share = min(1.0, launches.short_ns / report.span_ns + waits)
    return Tiny(
        "kernels",
        per_step,
        short,
        share,
        share,
        "trace: time of kernels below 10 µs, and their share of the waiting for launches",
        "/trace/launches/device",
        launches.sites,
    )


def _operators(case: Case) -> Tiny | None:
    """Without a device: time in tiny operators that neither loads data nor reads values, which have rules of their own."""
    report = case.trace
    if report is None or not report.span_ns or report.device_busy_ns:
        return None
    host = report.launches.host
    loose = 1 - _ready_made(report)
    if loose * (host.ops_per_step or 0) < case.limit(RULE, "min_ops_per_step"):
        return None
    elsewhere = report.breakdown_ns.data + report.synchronisation.total_ns
    own = max(0, round(loose * max(host.short_ns, _dispatch_ns(host))) - elsewhere)
    between = max(0, round(loose * min(host.between_ns, report.span_ns - own)) - elsewhere)
    sites = [site for site in host.sites if site.name not in {"aten::item", "aten::is_nonzero"}]
    return Tiny(
        "operators",
        host.num_short / case.num_traced_steps,
        host.num_short / max(host.num_ops, 1),
        min(1.0, (own + between) / report.span_ns),
        own / report.span_ns,
        "trace: time in short operators, or of all at their median, and between them; loading and reads left out",
        "/trace/launches/host",
        sites,
    )


def _ready_made(report: RankReport) -> float:
    """Part of the operators that recurrent layers issue by themselves, which nobody can batch: as of the forward pass, so of all."""
    under: set[int | None] = set()
    backward: set[int | None] = set()
    inside = everywhere = 0
    for node in report.call_tree:  # parents come first
        if node.parent in backward or node.name.startswith("autograd::"):
            backward.add(node.node)
            continue
        if node.kind != "cpu_op":
            continue
        if node.parent in under or node.name in READY_MADE:
            under.add(node.node)
            inside += node.calls
        everywhere += node.calls
    return inside / everywhere if everywhere else 0.0


def _dispatch_ns(host: Dispatch) -> int:
    """What all operators would take if each took no longer than the median: a busy machine stretches a few, not this."""
    is_tiny = host.own is not None and host.own.median_ns < host.short_limit_ns
    return host.own.count * host.own.median_ns if host.own is not None and is_tiny else 0
