"""From the log to graph breaks, skipped frames, and how many graphs came out of how many frames.

What counts is what torch wrote about each break together with the compilations that failed. Neither torch's own counters nor
`torch._dynamo.explain` see all of it: they miss functions that were given up whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyrometer.compiler.breaks.chains import roots
from pyrometer.compiler.breaks.frames import FrameCounts, Functions, compiled_frames
from pyrometer.compiler.breaks.lost_ops import lost_at, modules, num_sites, passed_by
from pyrometer.compiler.breaks.occurrence import Occurrence, occurrences_of
from pyrometer.compiler.breaks.record import Break, SkippedFrame
from pyrometer.compiler.breaks.skips import skipped_frames
from pyrometer.compiler.log import CompileLog
from pyrometer.compiler.private import break_registry


def read_breaks(log: CompileLog) -> list[Break]:
    """The places at which graphs had to end, in the order in which they were first met.

    A break that is met again, since its frame is compiled again or its function was inlined elsewhere, is one record with a
    count: they are told apart by id, by the user's line, and by the line of a library below it. Breaks that only follow from
    another one are listed too, as `chained`; without them the list holds what there is to repair.
    """
    compiled = compiled_frames(log)
    met, functions = occurrences_of(log, compiled), Functions(compiled.values())
    found: dict[tuple[str, str, str], list[tuple[Occurrence, Occurrence | None]]] = {}
    for occurrence, root in zip(met, roots(met), strict=True):
        found.setdefault(occurrence.key, []).append((occurrence, root))
    return [_break(same, functions) for same in found.values()]


def read_skips(log: CompileLog) -> list[SkippedFrame]:
    """The frames that were given up, and what for."""
    compiled = compiled_frames(log)
    skips = skipped_frames(log, compiled, occurrences_of(log, compiled))
    return [skip for of_frame in skips.values() for skip in of_frame]


def count_frames(log: CompileLog) -> FrameCounts:
    """Graphs in use, over all compilations; distinct frames that were tried; and distinct frames that were given up.

    A frame without tensor operations is tried, and yields neither a graph nor a skip.
    """
    compiled = compiled_frames(log)
    return FrameCounts(
        graphs=sum(made.num_graphs for made in compiled.values()),
        frames=len({compile_id.of_frame for compile_id in compiled}),
        skipped=len(skipped_frames(log, compiled, occurrences_of(log, compiled))),
    )


def _break(same: Sequence[tuple[Occurrence, Occurrence | None]], functions: Functions) -> Break:
    occurrences = [occurrence for occurrence, _ in same]
    first = occurrences[0]
    cause, passed = first.cause, passed_by(occurrences, functions)
    known = break_registry.by_id(cause.id) if cause.id is not None else None
    stack = max(
        (occurrence.stack for occurrence in occurrences), key=len
    )  # methods of one name may be missing from the others
    chained_to = [root for _, root in same if root is not None]
    is_chained = len(chained_to) == len(same)
    compile_ids = list(dict.fromkeys(occurrence.compiled.compile_id.text for occurrence in occurrences))
    return Break(
        id=cause.id,
        reason=cause.reason,
        explanation=cause.explanation or (known.explanation if known is not None else ""),
        hints=list(cause.hints or (known.hints if known is not None else ())),
        file=first.place.path,
        line=first.place.line_number,
        function=first.place.function_name,
        source=first.place.source or "",
        user_stack=list(stack),
        count=len(compile_ids),
        sites=num_sites(occurrences),
        inside_torch=all(occurrence.inside_torch for occurrence in occurrences),
        chained=is_chained,
        chained_to=chained_to[0].place.text if is_chained else None,
        skips_frame=any(occurrence.gives_up for occurrence in occurrences),
        skips_rest=any(occurrence.gives_up_rest for occurrence in occurrences),
        compile_ids=compile_ids,
        lost_ops=lost_at(occurrences, passed),
        left_eager=modules(passed),
        context=cause.context,
    )
