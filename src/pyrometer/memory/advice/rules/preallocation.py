"""Results that are gathered piece by piece and copied together."""

from __future__ import annotations

from collections.abc import Iterator

from pyrometer.advice import Advice
from pyrometer.memory.advice.case import Case
from pyrometer.memory.advice.lives import Life, Lives
from pyrometer.memory.advice.observing import Observed, Use
from pyrometer.quantity import counted, format_bytes

JOINING = ("aten.cat.default", "aten.stack.default")
FEWEST_PARTS = 3


def preallocation(case: Case) -> Iterator[Advice]:
    """Write into one tensor that is there from the beginning."""
    observed, lives = case.observed, case.lives
    if observed is None or lives is None or observed.backward:
        return
    last = observed.last_uses()
    changed: dict[int, list[Life]] = {}
    found: list[tuple[int, list[int]]] = []
    for use in observed.uses:
        if use.operator in JOINING and use.results:
            parts = [index for index in use.arguments if last[index] == use.event and _is_free(case, index)]
            if _grown(case, use, parts, changed, lives) or _gathered(case, use, parts, changed, lives):
                found.append((use.results[0], parts))
    saving = case.relived(changed)
    if saving is None:
        return
    peak = observed.log.peak_event
    result, parts = max(
        found, key=lambda pair: sum(_bytes(observed, index, peak) for index in (pair[0], *pair[1]))
    )
    site = case.site(result)
    yield Advice(
        slug="preallocate",
        fix_class="exact",
        lever="preallocate",
        title="write into a preallocated tensor instead of joining pieces",
        why=f"{case.where}; {case.lines([result])} are joined from {counted(len(parts), 'piece')} with "
        f"{format_bytes(sum(case.allocation(index).nbytes for index in parts))}, and both are alive at once"
        + (f" ({site.place})" if site is not None else ""),
        sketch="out = torch.empty(total, *rest, dtype=piece.dtype, device=piece.device)\n"
        "out[start : start + len(piece)] = piece  # for each piece, instead of torch.cat at the end",
        effect="the same values, and no copy at the end; the size must be known beforehand, or bounded",
        gain=saving.gain,
        where=case.main_line([result]),
    )


def _is_free(case: Case, index: int) -> bool:
    allocation = case.allocation(index)
    return allocation.category is None and not allocation.saved and not allocation.preexisting


def _grown(case: Case, use: Use, parts: list[int], changed: dict[int, list[Life]], lives: Lives) -> bool:
    """`all = cat([all, new])`: what there was is copied into a larger tensor of the same line."""
    result = use.results[0]
    line = case.allocation(result).origin.point
    before = next((index for index in parts if line and case.allocation(index).origin.point == line), None)
    if before is None:
        return False
    own = changed.get(before, [lives[before]])[0]
    changed[before] = [own._replace(died=min(own.died, lives[result].born))]
    return True


def _gathered(case: Case, use: Use, parts: list[int], changed: dict[int, list[Life]], lives: Lives) -> bool:
    """A list of pieces that one line made, joined once."""
    result = use.results[0]
    lines = {case.allocation(index).origin.point for index in parts}
    total = sum(case.allocation(index).nbytes for index in parts)
    if len(parts) < FEWEST_PARTS or len(lines) != 1 or total < 0.9 * lives[result].nbytes:
        return False
    for index in parts:
        changed[index] = [lives.until(index, lives[index].born + 1)]
    changed[result] = [lives[result]._replace(born=min(lives[index].born for index in parts))]
    return True


def _bytes(observed: Observed, index: int, event: int) -> int:
    allocation = observed.log.allocations[index]
    return allocation.nbytes if allocation.alive_after(event) else 0
