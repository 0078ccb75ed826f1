"""Do all ranks compile the same? Where they do not, one waits for the other, and a collective may time out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from pyrometer.compiler.breaks.read import read_breaks
from pyrometer.compiler.costs.caches import read_cache
from pyrometer.compiler.costs.compilations import read_compilations
from pyrometer.compiler.log import CompileLog
from pyrometer.compiler.recompiles.read import read_recompiles
from pyrometer.quantity import format_seconds

FAR = 2.0
LONG_S = 1.0


class Decisions(NamedTuple):
    """What one rank decided, in a form that can be compared; no times, and no numbers of ours."""

    name: str
    graphs: tuple[str, ...]
    breaks: tuple[str, ...]
    recompiles: tuple[str, ...]
    caches: tuple[str, ...]
    compile_s: float


def compare_ranks(logs: Sequence[CompileLog]) -> list[str]:
    """Where the decisions of the ranks differ from those of the first; empty when they do not.

    Compared are the sequence of compilations with the number of their operations, graph breaks, causes of recompilation, what
    the caches held, and the time that compiling took.

    Args:
        logs: one per rank.
    """
    ranks = [_decisions(log, number) for number, log in enumerate(logs)]
    return [line for rank in ranks[1:] for line in _differences(ranks[0], rank)]


def rank_of(log: CompileLog) -> int | None:
    """The rank that a log says it is of."""
    return next((entry.rank for entry in log.entries if entry.rank is not None), None)


def _decisions(log: CompileLog, number: int) -> Decisions:
    rank = rank_of(log)
    compilations = read_compilations(log)
    return Decisions(
        name=f"rank {number if rank is None else rank}",
        graphs=tuple(
            f"{compilation.compile_id} {compilation.function} ({compilation.file}:{compilation.line}), {compilation.outcome}"
            + ("" if compilation.num_ops is None else f", {compilation.num_ops} operations")
            for compilation in compilations
        ),
        breaks=tuple(
            f"{graph_break.reason} at {graph_break.file}:{graph_break.line}"
            for graph_break in read_breaks(log)
        ),
        recompiles=tuple(
            f"{recompile.compile_id} {recompile.function}: {'; '.join(cause.guard for cause in recompile.causes) or 'unknown'}"
            for recompile in read_recompiles(log)
        ),
        caches=tuple(f"{event.compile_id} {event.cache} {event.outcome}" for event in read_cache(log).events),
        compile_s=sum(compilation.total_s or 0.0 for compilation in compilations),
    )


def _differences(first: Decisions, decisions: Decisions) -> Iterator[str]:
    fields: dict[str, Callable[[Decisions], tuple[str, ...]]] = {
        "compilations": lambda rank: rank.graphs,
        "graph breaks": lambda rank: rank.breaks,
        "recompilations": lambda rank: rank.recompiles,
        "cache look-ups": lambda rank: rank.caches,
    }
    for what, get in fields.items():
        line = _first_difference(what, (first.name, get(first)), (decisions.name, get(decisions)))
        if line is not None:
            yield line
    shorter, longer = sorted((first, decisions), key=lambda rank: rank.compile_s)
    if longer.compile_s - shorter.compile_s >= LONG_S and longer.compile_s >= FAR * shorter.compile_s:
        yield (
            f"{longer.name} compiles for {format_seconds(longer.compile_s)}, {shorter.name} for "
            f"{format_seconds(shorter.compile_s)}: the next collective waits for the difference"
        )


def _first_difference(
    what: str, first: tuple[str, tuple[str, ...]], other: tuple[str, tuple[str, ...]]
) -> str | None:
    (first_name, ours), (other_name, theirs) = first, other
    if ours == theirs:
        return None
    place = next(
        (number for number, (one, another) in enumerate(zip(ours, theirs, strict=False)) if one != another),
        min(len(ours), len(theirs)),
    )
    nothing = "nothing more"
    return (
        f"{what} ({len(theirs)} on {other_name}, {len(ours)} on {first_name}) differ from number {place + 1} on: "
        f"{theirs[place] if place < len(theirs) else nothing} on {other_name}, "
        f"{ours[place] if place < len(ours) else nothing} on {first_name}"
    )
