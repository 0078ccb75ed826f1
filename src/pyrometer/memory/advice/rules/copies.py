"""Copies where a view would do, and the same numbers in two dtypes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyrometer.advice import Advice, Gain
from pyrometer.errors import PyrometerError
from pyrometer.memory.advice.case import WORTH, Case, measured, predicted
from pyrometer.memory.advice.observing import Observed
from pyrometer.memory.advice.trying import WithoutCopies, same_without_copies
from pyrometer.memory.prediction.predict import predict_memory
from pyrometer.memory.recording.steps import record_steps
from pyrometer.quantity import Bytes, counted, format_bytes

MOST_LINES = 4

_COPIES = re.compile(r"\.(clone|contiguous|repeat)\(")
_CASTS = re.compile(r"\.(float|double|half|bfloat16|to|type|type_as)\(")


def copies(case: Case) -> Iterator[Advice]:
    """Lines whose copy nothing needs, which is found out by leaving it out."""
    observed = case.observed
    if observed is None:
        return
    lines = _copying_lines(case)
    needless = set()
    for place in sorted(lines, key=lambda place: -lines[place])[:MOST_LINES]:
        if case.late:
            case.notes.append(f"whether {place} must copy was not tried: time was up")
        elif lines[place] >= WORTH * observed.log.peak_bytes and _is_needless(case, place):
            needless.add(place)
    if not needless:
        return
    gain = _without(case, needless)
    if (gain.saves_bytes or 0) < WORTH * observed.log.peak_bytes:
        return
    indices = [index for index in observed.alive_at_peak() if (s := case.site(index)) and s.place in needless]
    yield Advice(
        slug="views-instead-of-copies",
        fix_class="semantic",
        title=f"leave out {counted(len(needless), 'copy') if len(needless) == 1 else f'{len(needless)} copies'}",
        why=f"{case.where}; copies alive then that nothing needs: {case.lines(indices)}",
        sketch="x  # instead of x.clone() and x.contiguous(), where nothing is written into it\n"
        "x.expand(n, -1)  # instead of x.repeat(n, 1)",
        effect="the same values to the last bit, which was tried on these inputs; the result shares memory with its source, so "
        "writing into one changes the other",
        gain=gain,
        where=case.main_line(indices),
    )


def two_dtypes(case: Case) -> Iterator[Advice]:
    """A tensor and its cast, both kept for the backward pass."""
    observed, lives = case.observed, case.lives
    if observed is None or lives is None:
        return
    casts = _saved_casts(case, observed)
    changed = lives.without({index: gap for index, gap in observed.gaps().items() if index in casts})
    saving = case.relived(changed)
    if saving is None:
        return
    at_peak = casts.intersection(observed.alive_at_peak())
    nbytes = sum(lives[cast].nbytes for cast in at_peak)
    yield Advice(
        slug="one-dtype",
        fix_class="tolerance",
        title="do not keep the same numbers in two dtypes",
        why=f"{case.where}; {format_bytes(nbytes)} are casts kept for the backward pass beside what they were cast from: "
        f"{case.lines(at_peak)}",
        sketch="from torch.utils.checkpoint import checkpoint\n"
        "y = checkpoint(lambda h: f(h.float()), h, use_reentrant=False)  # f: what is computed in the other dtype",
        effect="the same gradients; the cast and what f computes from it are made again in the backward pass. Or compute f in the "
        "dtype that h has",
        gain=saving.gain,
        where=case.main_line(at_peak),
    )


def _saved_casts(case: Case, observed: Observed) -> set[int]:
    """Casts of the user's that autograd saves beside what was cast, while both live."""
    log = observed.log
    casts = set()
    for use in observed.uses:
        if use.operator.startswith("aten._to_copy") and not use.backward and use.arguments and use.results:
            source, cast = log.allocations[use.arguments[0]], log.allocations[use.results[0]]
            if (
                source.saved
                and cast.saved
                and source.category is None
                and _is_cast_by_user(case, use.results[0])
            ):
                casts.add(use.results[0])
    return casts


def _copying_lines(case: Case) -> dict[str, Bytes]:
    """Lines that ask for copies, with what these hold at the peak."""
    assert case.observed is not None
    sums: dict[str, Bytes] = {}
    for index in case.observed.alive_at_peak():
        site = case.site(index)
        if site is not None and site.source and _COPIES.search(site.source):
            sums[site.place] = sums.get(site.place, 0) + case.allocation(index).nbytes
    return sums


def _is_needless(case: Case, place: str) -> bool:
    try:
        return same_without_copies(case.work, {place})
    except PyrometerError as error:
        case.notes.append(f"whether {place} must copy could not be tried: {error}")
        return False


def _without(case: Case, places: set[str]) -> Gain:
    """What is saved without the copies, and how that was found: predicted, or measured where it cannot be predicted."""
    assert case.observed is not None
    with WithoutCopies(places):
        if case.base is not None:
            try:
                return predicted(case.base.peak_bytes - predict_memory(case.work).peak_bytes)
            except PyrometerError:
                pass  # it can be run, though
        return measured(case.observed.log.peak_bytes - record_steps(case.work).peak_bytes)


def _is_cast_by_user(case: Case, index: int) -> bool:
    site = case.site(index)
    return site is not None and bool(site.source) and bool(_CASTS.search(site.source or ""))
