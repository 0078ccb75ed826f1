"""Which rule explains a synchronisation point of a trace, and the expressions in the source that cause it.

A trace names the operator in which the host waited and the function that called it; the source names the expressions in
that function that read a tensor on the host. Together they give the exact line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from pyrometer.rules.host.patterns import reads, shown, sizes, truth
from pyrometer.rules.host.patterns.reads import Read, Reads
from pyrometer.rules.joining import function_at, lines_within
from pyrometer.rules.rule import Case

if TYPE_CHECKING:
    from pyrometer.trace.records.waiting import SyncPoint

UNEXPLAINED = "PYR108"
"""The rule for what no other explains."""

OF_TIMING = re.compile(r"bench|profil|tim(ed|er|ing|eit)|measure|warm_?up", re.IGNORECASE)
"""Names of functions and files in which waiting for a device belongs to measuring it."""


class Claim(NamedTuple):
    """Which rules may explain a point: the first whose pattern is in the source of the function, else the first of all."""

    operator: re.Pattern[str]
    codes: tuple[str, ...]
    direction: str = ""
    """Of the copy that was waited for; where a trace does not name it, only the source can tell."""


CLAIMS = (
    Claim(re.compile(r"aten::(item|_local_scalar_dense)$"), ("PYR101", "PYR104", "PYR103")),
    Claim(re.compile(r"aten::(is_nonzero|equal|allclose)$"), ("PYR104",)),
    Claim(re.compile(r"aten::(_index_put_impl_|index_put_|index)$"), ("PYR106",)),
    Claim(
        re.compile(
            r"aten::(nonzero|nonzero_numpy|masked_select|_unique2|unique_dim|unique_consecutive"
            r"|unique_dim_consecutive|repeat_interleave|bincount|argwhere|combinations)$"
        ),
        ("PYR107", "PYR106"),
    ),
    Claim(
        re.compile(r"aten::(to|_to_copy|_to_cpu|copy_|cpu|numpy|tolist)$"),
        ("PYR102", "PYR101", "PYR103"),
        "DtoH|D2H|Device -> (Pageable|Pinned|Host)",
    ),
    Claim(
        re.compile(r"aten::(to|_to_copy|copy_|pin_memory)$"),
        ("PYR113",),
        "HtoD|H2D|(Pageable|Pinned|Host) -> Device",
    ),
    Claim(re.compile(r"(cuda|hip)(Device|Stream|Event)Synchronize$"), ("PYR105",)),
)

READS: dict[str, Reads] = {
    "PYR101": reads.scalar_reads,
    "PYR102": reads.copies_to_host,
    "PYR103": shown.prints,
    "PYR104": truth.conditions,
    "PYR105": reads.synchronisations,
    "PYR106": sizes.mask_indexing,
    "PYR107": sizes.sized_by_data,
}


def claimed(point: SyncPoint, case: Case) -> tuple[str, tuple[Read, ...]]:
    """The rule that explains a point, with the expressions that cause it, the one in most loops first."""
    possible = [one for one in CLAIMS if one.operator.match(point.name)]
    sure = [one for one in possible if re.search(one.direction, point.waited_for or "")]
    for claim in sure or possible:
        if claim.codes == ("PYR105",) and not _is_direct(point):
            continue
        for code in claim.codes:
            found = _reads_at(code, point, case)
            if found:
                return code, found
        if claim in sure:
            return claim.codes[0], ()
    return UNEXPLAINED, ()


def is_timed(point: SyncPoint) -> bool:
    """Whether a wait belongs to measuring, as the names of its function and file say."""
    return any(OF_TIMING.search(name) for name in (point.where.function, point.where.file) if name)


def _is_direct(point: SyncPoint) -> bool:
    """Whether the program itself called for the wait: in a function of its own, and in no operator."""
    return point.where.file is not None and point.where.op is None and not is_timed(point)


def _reads_at(code: str, point: SyncPoint, case: Case) -> tuple[Read, ...]:
    """What in the function that a trace names can be the cause."""
    function = function_at(point.where, case.modules)
    if function is None or code not in READS:
        return ()
    module, lines = function[0], set(lines_within(point.where, case.modules))
    here = [read for read in READS[code](module) if read.line in lines and reads.may_wait(module, read)]
    return tuple(sorted(here, key=lambda read: (-reads.depth(module, read), read.line)))
