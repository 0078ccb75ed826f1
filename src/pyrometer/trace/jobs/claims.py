"""Which file stands for a rank, where several claim to: those that were recorded together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyrometer.quantity import format_seconds
from pyrometer.trace.jobs.doubts import FAR_APART_NS
from pyrometer.trace.jobs.held import Held
from pyrometer.trace.jobs.job import RankFailure


def settle(claims: Mapping[int, Sequence[Held]]) -> tuple[list[Held], list[RankFailure]]:
    """One file for each rank, in order, and the others.

    A launcher that begins anew, a profiler that records twice, and a second run in the same folder leave several files of a rank. Those
    are chosen that most ranks recorded at the same time, the latest of them.
    """
    most = max(claims.values(), key=len, default=())
    settled = max((_nearest(claims, _begin_ns(each)) for each in most), key=_together, default=[])
    failures = [
        RankFailure(path=other.path, rank=one.rank, message=_said(other, one))
        for one in settled
        for other in claims[one.rank]
        if other is not one
    ]
    return settled, failures


def _nearest(claims: Mapping[int, Sequence[Held]], at_ns: int) -> list[Held]:
    """Of each rank the file that begins nearest to a moment; of copies the first by path."""
    return [
        min(claims[rank], key=lambda one: (abs(_begin_ns(one) - at_ns), one.path)) for rank in sorted(claims)
    ]


def _together(files: Sequence[Held]) -> tuple[int, int]:
    """How many ranks begin within what clocks may differ of the middle one, and when that is."""
    begins = sorted(map(_begin_ns, files))
    middle = begins[len(begins) // 2]
    return sum(abs(begin - middle) <= FAR_APART_NS for begin in begins), middle


def _begin_ns(one: Held) -> int:
    return one.base_ns + one.start_ns


def _said(other: Held, one: Held) -> str:
    apart_ns = _begin_ns(one) - _begin_ns(other)
    if not apart_ns:
        return f"claims to be rank {one.rank}, as {one.path} does; pass one file per rank"
    way = "earlier" if apart_ns > 0 else "later"
    return f"it recorded rank {one.rank} {format_seconds(abs(apart_ns) / 1e9)} {way} than the file that is compared"
