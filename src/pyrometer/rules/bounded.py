"""No predicted range is wider than what was measured: without a place at all, a step takes as long as its ceiling says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from pyrometer.bench.ceiling import Ceiling
from pyrometer.place import Place
from pyrometer.rules.finding import Finding
from pyrometer.rules.joining import is_same_file

OF_THE_PLACE = frozenset({
    "item-in-hot-loop", "copy-to-host-in-hot-loop", "print-tensor-in-hot-loop", "tensor-as-condition", "synchronize-in-hot-loop",
    "boolean-mask-indexing", "nonzero-in-hot-loop", "python-loop-over-dimension", "small-host-to-device-copies",
    "input-output-in-step", "serialisation-in-step", "python-loop-over-elements", "text-work-in-step", "waiting-in-step",
    "random-numbers-one-by-one", "tiny-operators-in-loop", "costly-place", "table-rebuilt-each-step", "boxes-suppressed-in-python",
    "prefix-computed-again",
    "hidden-copy", "buffer-allocated-each-step", "decomposed-attention", "cat-in-loop", "inefficient-op",
})  # fmt: skip
"""Rules whose advice changes what stands at the place and nothing else. One about a dtype, a layout or a whole program may bring
more than the place takes."""

OF_THE_LOADER = frozenset({
    "data-waits", "no-workers", "too-many-workers", "shallow-prefetch", "python-heavy-collate", "preprocessing-repeated-each-epoch",
    "file-opened-per-item", "expensive-samples", "threads-in-workers",
})  # fmt: skip
"""Rules whose advice brings the batches sooner, and does not change the rest of the step."""


def bounded(finding: Finding, ceilings: Sequence[Ceiling]) -> Finding:
    """The same with a gain that is not better than what cutting its place out brought.

    >>> from pyrometer.advice import Gain
    >>> from pyrometer.bench.ceiling import Ceiling
    >>> from pyrometer.place import Place
    >>> from pyrometer.rules.registry import find_rule
    >>> rule = find_rule("data-waits")
    >>> finding = rule.finding(message="waits", where=Place(), confidence="high", advice="load", gain=Gain(ratio_low=0.1, ratio_high=0.9, method="model"))
    >>> loader = Ceiling(where=Place(), what="loader", calls_per_step=1, ratio=0.5, ratio_low=0.4, ratio_high=0.6, pairs=9, same_inputs=False, same_results=False)
    >>> bounded(finding, [loader]).advice.gain.ratio_low
    0.4
    """
    gain = finding.advice.gain
    if gain is None or gain.ratio_low is None or gain.measured:
        return finding
    ceiling = max(_of(finding, ceilings), key=lambda one: one.ratio_low, default=None)
    if ceiling is None or ceiling.ratio_low <= gain.ratio_low:
        return finding
    low = min(ceiling.ratio_low, 1.0)
    high = None if gain.ratio_high is None else max(gain.ratio_high, low)
    told = f"{gain.method}; the best case is measured: the step without {name_of(ceiling)}"
    narrower = msgspec.structs.replace(gain, ratio_low=low, ratio_high=high, method=told)
    return msgspec.structs.replace(finding, advice=msgspec.structs.replace(finding.advice, gain=narrower))


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
