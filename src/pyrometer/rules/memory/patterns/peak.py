"""What the peak of memory is made of, and which part of it dominates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from pyrometer.advice import Cost
from pyrometer.place import Place
from pyrometer.quantity import Bytes, Ratio, format_bytes, format_percent
from pyrometer.rules.finding import Finding
from pyrometer.rules.from_advice import Given, advice_finding, given_advice
from pyrometer.rules.rule import Case, Limit, Rule
from pyrometer.text import with_capital

if TYPE_CHECKING:
    from pyrometer.memory.profile import MemoryProfile

GROUPS: dict[str, tuple[str, ...]] = {
    "parameters": ("parameters", "master"),
    "gradients": ("gradients",),
    "optimizer state": ("optimizer",),
    "activations": ("activations",),
    "temporaries": ("temporaries", "workspace"),
    "kept references": ("unknown",),
    "inputs": ("inputs",),
}
"""Categories of the profile that one remedy lowers together; what the allocator caches is nobody's."""

MIN_PEAK = Limit(
    "min_peak_bytes", 32 * 2**20, "a smaller peak fits any device that runs torch many times over"
)
LIMITS = (
    MIN_PEAK,
    Limit(
        "min_share", 0.4, "below it more than half of the peak would stay, whatever is done about this part"
    ),
    Limit("min_saving", 0.1, "a tenth of the peak does not decide whether a batch or a model fits"),
    Limit(
        "short_share", 0.8, "beyond it a longer input, another allocation order or a neighbour ends in an OOM"
    ),
)


class Held(NamedTuple):
    """One part of the peak."""

    group: str
    bytes: Bytes
    share: Ratio
    """Of the peak without the allocator's cache."""


def parts(memory: MemoryProfile) -> list[Held]:
    """The parts of the peak, the largest first."""
    ledger = memory.ledger_bytes
    total = max(memory.peak_bytes - ledger.get("cache", 0), 1)
    sums = {group: sum(ledger.get(name, 0) for name in names) for group, names in GROUPS.items()}
    return sorted(
        (Held(group, size, size / total) for group, size in sums.items()), key=lambda part: -part.bytes
    )


def dominant(memory: MemoryProfile, min_share: Ratio) -> Held | None:
    """The one part that the peak is mostly made of, if any; so at most one rule says so."""
    largest = parts(memory)[0]
    return largest if largest.share >= min_share else None


def is_large(case: Case, rule: Rule) -> bool:
    """Whether the peak is worth lowering at all."""
    memory = case.memory
    return memory is not None and memory.peak_bytes >= case.limit(rule, MIN_PEAK.name)


def is_short(case: Case, share: Ratio) -> bool:
    """Whether the memory that there is nearly ran out."""
    memory = case.memory
    if memory is None:
        return False
    levels = memory.levels
    there = levels.device_total_bytes
    if there is None and memory.device.startswith("cpu") and case.environment is not None:
        there = case.environment.memory_bytes
    used = max(memory.peak_bytes, levels.reserved_peak_bytes or 0)
    return there is not None and used >= share * there


def of_advice(rule: Rule, case: Case, given: Given, without: str, **fields: Any) -> Finding:
    """The finding about one rehearsed piece of advice.

    Args:
        rule: whose finding it is.
        case: with a memory profile.
        given: the advice.
        without: what the rehearsed step did without, or how it ran, such as "without the copies".
        fields: the finding's message, confidence and resource, and what replaces the rest.
    """
    memory = case.memory
    assert memory is not None
    own: dict[str, Any] = {
        "evidence": {
            "peak_bytes": memory.peak_bytes,
            "saves_bytes": given.advice.saves_bytes,
            "because": given.advice.why,
        },
        "cost": Cost(bytes=given.advice.saves_bytes, method=f"peak less that of the same step {without}"),
    }
    return advice_finding(rule, given, **{**own, **fields})


def of_peak(
    rule: Rule, case: Case, group: str, remedies: tuple[str, ...], faults: tuple[str, ...] = ()
) -> Iterator[Finding]:
    """The finding of a rule about one part of the peak.

    Args:
        rule: whose limits are read.
        case: with a memory profile.
        group: the part.
        remedies: advice that lowers it, of which the largest saving is told, where the part dominates the peak.
        faults: advice that is worth a word even where the part does not dominate.
    """
    memory = case.memory
    if memory is None or not is_large(case, rule):
        return
    held = next(part for part in parts(memory) if part.group == group)
    most = dominant(memory, case.limit(rule, "min_share"))
    dominates = most is not None and most.group == group
    least = case.limit(rule, "min_saving") * memory.peak_bytes
    chosen = [
        given
        for given in given_advice(case.memory, "/memory", *faults, *(remedies if dominates else ()))
        if given.advice.saves_bytes >= least
    ]
    if chosen:
        yield _finding(rule, case, held, chosen, dominates=dominates)


def _finding(rule: Rule, case: Case, held: Held, chosen: list[Given], *, dominates: bool) -> Finding:
    memory, best = case.memory, chosen[0]
    assert memory is not None
    short = is_short(case, case.limit(rule, "short_share"))
    peak = f"the peak of {format_bytes(memory.peak_bytes)}, which falls in {memory.peak_phase or 'an unknown phase'}"
    first = f"{with_capital(held.group)} hold {format_bytes(held.bytes)} ({format_percent(held.share, 2)}) of {peak}"
    fact = f"{first}: they dominate it" if dominates else first
    return advice_finding(
        rule,
        best,
        severity="warning" if short else rule.severity,
        message=f"{fact}; {format_bytes(best.advice.saves_bytes)} of it could go",
        where=_place(memory, held.group) if dominates else best.place,
        evidence={
            "peak_bytes": memory.peak_bytes,
            "held_bytes": held.bytes,
            "share_of_peak": round(held.share, 4),
            "dominates": dominates,
            "phase": memory.peak_phase,
            "remedies": [
                f"{given.advice.slug}: {format_bytes(given.advice.saves_bytes)}" for given in chosen
            ],
        },
        links=[*(f"/memory/ledger_bytes/{name}" for name in GROUPS[held.group]), best.link],
        cost=Cost(bytes=held.bytes, method="held at the recorded peak"),
        confidence="high" if best.advice.gain and best.advice.gain.measured else "medium",
        resource=f"peak:{held.group.replace(' ', '-')}",
    )


def _place(memory: MemoryProfile, group: str) -> Place:
    """The line that holds most of a part; a category that is there before the steps has none."""
    names = GROUPS[group]
    held = next((one for one in memory.at_peak if one.category in names), None)
    if held is None:
        return Place()
    file, _, line = held.site.rpartition(":")
    known = bool(file) and line.isdigit()
    return Place(
        file=file if known else None,
        line=int(line) if known else None,
        function=held.function,
        module=held.module or None,
        op=held.operator,
    )
