"""Ranges as everything that was measured allows them.

No predicted range is better than the step without the place at all, where that was measured. Where the place is what its function is
there for, the whole function goes with it at best, with its backward pass; and where that function was cut out of the step, both ends
follow from the experiment. A range that is known from a trace alone is no better than the trace replayed with its resource free.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from pyrometer.advice import Gain
from pyrometer.bench.ceiling import Ceiling
from pyrometer.place import Place
from pyrometer.quantity import Ratio
from pyrometer.rules.finding import Finding
from pyrometer.rules.host.patterns.spending import spread
from pyrometer.rules.joining import is_same_file
from pyrometer.rules.rule import Case
from pyrometer.rules.surroundings import surroundings

if TYPE_CHECKING:
    from pyrometer.trace.records.gains import Resource

OF_THE_PLACE = frozenset({
    "item-in-hot-loop", "copy-to-host-in-hot-loop", "print-tensor-in-hot-loop", "tensor-as-condition", "synchronize-in-hot-loop",
    "boolean-mask-indexing", "nonzero-in-hot-loop", "python-loop-over-dimension", "small-host-to-device-copies",
    "input-output-in-step", "serialisation-in-step", "python-loop-over-elements", "text-work-in-step", "waiting-in-step",
    "random-numbers-one-by-one", "tiny-operators-in-loop", "costly-place", "costly-loop", "table-rebuilt-each-step", "boxes-suppressed-in-python",
    "prefix-computed-again",
    "hidden-copy", "buffer-allocated-each-step", "decomposed-attention", "cat-in-loop", "inefficient-op", "one-op-dominates",
})  # fmt: skip
"""Rules whose advice changes what stands at the place and nothing else. One about a dtype, a layout or a whole program may bring
more than the place takes."""

LONGER = 1.5
"""Times that what goes may take, beside what stays, of what it was measured to take: one minute of a machine is not as the next."""

SURE_PART = 0.75
"""Of a function that is there for the place, which goes with it at worst."""

REPLACING = OF_THE_PLACE - {
    "print-tensor-in-hot-loop", "synchronize-in-hot-loop", "buffer-allocated-each-step", "cat-in-loop", "prefix-computed-again",
}  # fmt: skip
"""Rules of these whose advice is to write what the place does in another way, so that what is around it may go, too."""

OF_THE_LOADER = frozenset({
    "data-waits", "no-workers", "too-many-workers", "shallow-prefetch", "python-heavy-collate", "preprocessing-repeated-each-epoch",
    "file-opened-per-item", "expensive-samples", "threads-in-workers",
})  # fmt: skip
"""Rules whose advice brings the batches sooner, and does not change the rest of the step."""


NOTHING = 0.995
"""Of the step's time, new over old: what is no better at best is no change."""

OF_RESOURCES: Mapping[str, Resource] = {
    **dict.fromkeys(OF_THE_LOADER, "data"),
    "host-time-dominates": "host",
    "launch-bound": "host",
    "exposed-communication": "communication",
    "pageable-copies": "copies",
    "small-host-to-device-copies": "copies",
    "item-in-hot-loop": "synchronisation",
}
"""Rules whose advice changes one resource of a trace, and nothing else."""


def bounded(finding: Finding, case: Case) -> Finding:
    """The same with a range that holds what was measured around its place, and no more than its resource is worth in the trace."""
    return _replayed(_measured(finding, case), case)


def wins_nothing(finding: Finding) -> bool:
    """Whether what was measured or replayed leaves nothing to win where the finding is about time alone."""
    gain, cost = finding.advice.gain, finding.cost
    if gain is None or gain.ratio_low is None or gain.measured:
        return False
    is_about_time = cost is not None and cost.share is not None and not cost.bytes
    return is_about_time and gain.ratio_low >= NOTHING


def _replayed(finding: Finding, case: Case) -> Finding:
    """The same, not better than the replay of the trace with its resource free, if all that is known of it is of the trace."""
    gain, report = finding.advice.gain, case.trace
    of_trace = bool(finding.links) and all(link.startswith("/trace/") for link in finding.links)
    resource = OF_RESOURCES.get(finding.name)
    if report is None or gain is None or gain.ratio_low is None or gain.measured or not of_trace:
        return finding
    free = next((tried.free_ratio for tried in report.bounds.resources if tried.resource == resource), 0.0)
    if free <= gain.ratio_low:
        return finding
    low = min(free, 1.0)
    high = None if gain.ratio_high is None else max(gain.ratio_high, low)
    told = f"{gain.method}; at best the trace replayed with {resource} free"
    gain = msgspec.structs.replace(gain, ratio_low=low, ratio_high=high, method=told)
    return msgspec.structs.replace(finding, advice=msgspec.structs.replace(finding.advice, gain=gain))


def _measured(finding: Finding, case: Case) -> Finding:
    """The same with a range that holds what was measured of the function around its place."""
    gain, share = finding.advice.gain, finding.cost.share if finding.cost is not None else None
    low = gain.ratio_low if gain is not None else None
    if gain is None or low is None or gain.measured:
        return finding
    around = surroundings(case, finding.where, share) if share and finding.name in REPLACING else None
    sampled = any(link.startswith("/host/") for link in finding.links)
    if around is None or case.host is None or not share:
        gain = _elsewhere(gain, sampled=sampled)
    else:
        most = spread(case.host, share).most if sampled else share
        high = 1.0 if gain.ratio_high is None else gain.ratio_high
        best, worst = min(1.0, (1 - low) / most), min(1.0, (1 - high) / share)
        if around.ceiling is None:
            known = spread(case.host, around.share)
            gain = _elsewhere(
                _with_function(gain, 1 - best * known.most, 1 - worst * SURE_PART * known.least),
                sampled=sampled,
            )
        else:
            sure = worst * min(1.0, max(SURE_PART, share / around.share))
            gain = _without_function(gain, around.ceiling, best * around.most, sure * around.part)
    gain = _limited(gain, finding, case.ceilings or ())
    return msgspec.structs.replace(finding, advice=msgspec.structs.replace(finding.advice, gain=gain))


def _with_function(gain: Gain, low: Ratio, high: Ratio) -> Gain:
    """The same where the function around the place goes with it at best, and the most of it at worst."""
    if gain.ratio_low is None or gain.ratio_high is None or low >= gain.ratio_low:
        return gain
    told = f"{gain.method}; at best its function goes with it"
    return msgspec.structs.replace(gain, ratio_low=low, ratio_high=min(gain.ratio_high, high), method=told)


def _without_function(gain: Gain, ceiling: Ceiling, best: Ratio, worst: Ratio) -> Gain:
    """The same where between these parts of the function go that was cut out of the step."""
    return msgspec.structs.replace(
        gain,
        ratio_low=1 - best * (1 - min(ceiling.ratio_low, 1.0)),
        ratio_high=1 - worst * (1 - min(ceiling.ratio_high, 1.0)),
        method=f"{gain.method}; measured: the step without {name_of(ceiling)}",
    )


def _elsewhere(gain: Gain, *, sampled: bool) -> Gain:
    """The same at another time, in which what goes takes more of the step, and where samples tell its share also less."""
    low, high = gain.ratio_low or 0.0, gain.ratio_high
    if low >= 1:
        return gain
    if sampled and high is not None and high < 1:
        high /= high + (1 - high) / LONGER
    return msgspec.structs.replace(gain, ratio_low=low / (low + LONGER * (1 - low)), ratio_high=high)


def _limited(gain: Gain, finding: Finding, ceilings: Sequence[Ceiling]) -> Gain:
    """The same, not better than what cutting out the place, or what holds it, brought."""
    ceiling = max(_of(finding, ceilings), key=lambda one: one.ratio_low, default=None)
    if ceiling is None or gain.ratio_low is None or ceiling.ratio_low <= gain.ratio_low:
        return gain
    low = min(ceiling.ratio_low, 1.0)
    high = None if gain.ratio_high is None else max(gain.ratio_high, low)
    told = f"{gain.method}; the best case is measured: the step without {name_of(ceiling)}"
    return msgspec.structs.replace(gain, ratio_low=low, ratio_high=high, method=told)


def _of(finding: Finding, ceilings: Sequence[Ceiling]) -> Iterable[Ceiling]:
    if finding.name in OF_THE_LOADER:
        return [ceiling for ceiling in ceilings if ceiling.what == "loader"]
    if finding.name in OF_THE_PLACE:
        return [ceiling for ceiling in ceilings if holds(ceiling, finding.where)]
    return []


def holds(ceiling: Ceiling, place: Place) -> bool:
    """Whether a place lies within what was cut out."""
    first, last, line = ceiling.where.line, ceiling.last_line, place.line
    if first is None or last is None or line is None or place.file is None or ceiling.where.file is None:
        return False
    return first <= line <= last and is_same_file(place.file, ceiling.where.file)


def name_of(ceiling: Ceiling) -> str:
    """What was cut out, as sentences name it."""
    if ceiling.what == "loader":
        return "the loader"
    return f"`{(ceiling.where.function or 'it').replace('<locals>.', '')}`"
