"""What changed from one report of the compiler to another: two versions of one program.

A break is the same if it has the same id in the same function of the same file at a line of the same text; so lines that moved
and directories that differ are no change. Several of one kind are counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from pyrometer.compiler.breaks.record import Break, SkippedFrame
from pyrometer.compiler.fusion.record import FusedGroup
from pyrometer.compiler.recompiles.record import Recompile
from pyrometer.compiler.report import CompileDiff, CompileReport, CountChange, FigureChange, KeptBreak
from pyrometer.compiler.stack import own_name
from pyrometer.compiler.wording import break_text, frame_text, headline, listed, recompile_text
from pyrometer.place import file_name
from pyrometer.quantity import counted

_NUMBER = re.compile(r"\d+")
_AT_LIMIT = ("function at the recompile limit", "functions at the recompile limit")
T = TypeVar("T")


class _Matched(NamedTuple):
    added: list[int]
    removed: list[int]
    kept: list[tuple[int, int]]


def diff_compile(before: CompileReport, after: CompileReport) -> CompileDiff:
    """What changed between two reports of one program.

    Args:
        before: of the version that is compared with.
        after: of the new version.
    """
    breaks = _match_breaks(before.breaks, after.breaks)
    recompiles = _match(before.recompiles, after.recompiles, _recompile_key)
    skips = _match(before.skips, after.skips, _skip_key)
    limits = _match(
        before.limits,
        after.limits,
        lambda limit_reached: (file_name(limit_reached.file), own_name(limit_reached.function)),
    )
    old_fusions, new_fusions = _told_fusions(before, after)
    fusions = _match(old_fusions, new_fusions, _fusion_key)
    counts = _counts(before, after)
    diff = CompileDiff(
        sentence="",
        changed=bool(counts)
        or any(one.added or one.removed for one in (breaks, recompiles, skips, limits, fusions)),
        breaks_added=_taken(after.breaks, breaks.added),
        breaks_removed=_taken(before.breaks, breaks.removed),
        breaks_kept=[
            KeptBreak(before=before.breaks[old], after=after.breaks[new]) for old, new in breaks.kept
        ],
        recompiles_added=_taken(after.recompiles, recompiles.added),
        recompiles_removed=_taken(before.recompiles, recompiles.removed),
        skips_added=_taken(after.skips, skips.added),
        skips_removed=_taken(before.skips, skips.removed),
        limits_added=_taken(after.limits, limits.added),
        limits_removed=_taken(before.limits, limits.removed),
        counts=counts,
        guards=_count_changes(before.guards.by_type, after.guards.by_type),
        fusions_added=_taken(after.fusions, fusions.added),
        fusions_removed=_taken(before.fusions, fusions.removed),
        costs=_figure_changes(_figures(before), _figures(after)),
        cache=_count_changes(_cache_counts(before), _cache_counts(after)),
        cache_before=before.cache.state,
        cache_after=after.cache.state,
        notes=_notes(before, after),
    )
    return replace(diff, sentence=_sentence(diff, after))


def _match_breaks(before: Sequence[Break], after: Sequence[Break]) -> _Matched:
    """By their text; where a side withholds it, by order within the function."""
    exact = _match(before, after, lambda graph_break: (*_break_key(graph_break), graph_break.source.strip()))
    old, new = _taken(before, exact.removed), _taken(after, exact.added)
    loose = _match(old, new, _break_key, lambda a, b: not a.source.strip() or not b.source.strip())
    return _Matched(
        [exact.added[place] for place in loose.added],
        [exact.removed[place] for place in loose.removed],
        sorted([*exact.kept, *((exact.removed[a], exact.added[b]) for a, b in loose.kept)]),
    )


def _break_key(graph_break: Break) -> tuple[str, ...]:
    """What a break is and where, without its line number."""
    return (
        graph_break.id or headline(graph_break.reason),
        file_name(graph_break.file),
        own_name(graph_break.function),
    )


def _match(
    before: Sequence[T],
    after: Sequence[T],
    key: Callable[[T], Hashable],
    may: Callable[[T, T], bool] = lambda _a, _b: True,
) -> _Matched:
    """Pairs of equal keys, in their order; the rest is added or removed."""
    waiting: dict[Hashable, list[int]] = {}
    for place, one in enumerate(before):
        waiting.setdefault(key(one), []).append(place)
    added, kept = list[int](), list[tuple[int, int]]()
    for place, one in enumerate(after):
        old = next((old for old in waiting.get(key(one), ()) if may(before[old], one)), None)
        if old is None:
            added.append(place)
        else:
            waiting[key(one)].remove(old)
            kept.append((old, place))
    removed = sorted(old for places in waiting.values() for old in places)
    return _Matched(added, removed, sorted(kept))


def _recompile_key(recompile: Recompile) -> Hashable:
    """The function and what changed in it; not the values, nor which compilation it was."""
    changed = tuple(sorted((change.source, change.kind) for change in recompile.changed_inputs))
    guards = tuple(sorted({_NUMBER.sub("#", cause.guard) for cause in recompile.causes}))
    return (file_name(recompile.file), own_name(recompile.function), changed or guards)


def _skip_key(frame: SkippedFrame) -> Hashable:
    return (file_name(frame.file), own_name(frame.function), frame.kind)


def _fusion_key(group: FusedGroup) -> Hashable:
    return (group.is_backward, group.kind, tuple(sorted(group.ops)))


def _told_fusions(before: CompileReport, after: CompileReport) -> tuple[list[FusedGroup], list[FusedGroup]]:
    """Fusions where both sides tell them: a cached compilation tells none."""
    return (before.fusions, after.fusions) if before.fusions and after.fusions else ([], [])


def _taken(items: Sequence[T], places: Iterable[int]) -> list[T]:
    return [items[place] for place in places]


def _counts(before: CompileReport, after: CompileReport) -> list[CountChange]:
    """Counts that both sides tell, and that differ."""
    pairs = {
        "graphs": (before.graphs, after.graphs),
        "frames": (before.frames, after.frames),
        "skipped_frames": (before.skipped_frames, after.skipped_frames),
    }
    if before.graph_records and after.graph_records:
        pairs["operations"] = (_num_ops(before), _num_ops(after))
    if before.fusions and after.fusions:
        pairs["fused_groups"] = (len(before.fusions), len(after.fusions))
    if before.code and after.code:
        pairs["kernels"] = (_num_kernels(before), _num_kernels(after))
    return [CountChange(name=name, before=old, after=new) for name, (old, new) in pairs.items() if old != new]


def _num_ops(report: CompileReport) -> int:
    return sum(graph.num_ops for graph in report.graph_records if graph.stage == "dynamo")


def _num_kernels(report: CompileReport) -> int:
    return sum(len(code.kernels) for code in report.code)


def _cache_counts(report: CompileReport) -> dict[str, int]:
    cache = report.cache
    return {"hits": cache.hits, "misses": cache.misses, "bypasses": cache.bypasses}


def _figures(report: CompileReport) -> dict[str, float | None]:
    cost = report.cost
    return {
        "compile_s": cost.compile_s,
        "first_call_s": cost.first_call_s,
        "steady_s": cost.steady_s,
        "eager_steady_s": cost.eager_steady_s,
        "dispatch_s": cost.dispatch_s,
        "artifact_bytes": report.artifact_bytes,
        "guard_eval_s": report.guards.eval_s,
        **{f"phase.{phase}_s": seconds for phase, seconds in cost.phases_s.items()},
    }


def _count_changes(before: dict[str, int], after: dict[str, int]) -> list[CountChange]:
    names = dict.fromkeys([*before, *after])
    pairs = ((name, before.get(name, 0), after.get(name, 0)) for name in names)
    return [CountChange(name=name, before=old, after=new) for name, old, new in pairs if old != new]


def _figure_changes(before: dict[str, float | None], after: dict[str, float | None]) -> list[FigureChange]:
    names = dict.fromkeys([*before, *after])
    pairs = ((name, before.get(name), after.get(name)) for name in names)
    return [FigureChange(name=name, before=old, after=new) for name, old, new in pairs if old != new]


def _notes(before: CompileReport, after: CompileReport) -> list[str]:
    notes = []
    if before.cache.state != after.cache.state:
        notes.append(
            f"the compile cache was {before.cache.state} before and is {after.cache.state} now: "
            "compile times and kernels do not compare"
        )
    if bool(before.fusions) != bool(after.fusions):
        notes.append("fusions are known on one side only, and are not compared")
    one_sided = sorted(set(before.unavailable) ^ set(after.unavailable))
    return [*notes, *(f"known on one side only: {missing}" for missing in one_sided)]


def _sentence(diff: CompileDiff, after: CompileReport) -> str:
    parts = [
        _of_breaks(diff.breaks_added, diff.breaks_removed),
        _moved(
            ("recompile", "recompiles"),
            map(recompile_text, diff.recompiles_added),
            map(recompile_text, diff.recompiles_removed),
        ),
        _moved(
            ("skipped frame", "skipped frames"),
            map(frame_text, diff.skips_added),
            map(frame_text, diff.skips_removed),
        ),
        _moved(_AT_LIMIT, map(frame_text, diff.limits_added), map(frame_text, diff.limits_removed)),
    ]
    graphs = next((change for change in diff.counts if change.name == "graphs"), None)
    if graphs is not None:
        parts.append(f"graphs went from {graphs.before} to {graphs.after}")
    text = "; ".join(part for part in parts if part)
    if text:
        return f"this change {text}"
    standing = f"{counted(len(after.breaks), 'break')}, {counted(len(after.recompiles), 'recompile')}"
    if diff.changed:
        names = listed([change.name for change in diff.counts] or ["fusions"])
        return (
            f"this change left breaks and recompiles as they were ({standing}); other counts differ: {names}"
        )
    return f"nothing changed: {standing}, {counted(after.graphs, 'graph')}"


def _of_breaks(added: Sequence[Break], removed: Sequence[Break]) -> str:
    if not added and not removed:
        return ""

    def told(breaks: Sequence[Break]) -> str:
        if not breaks:
            return "none"
        first = "a break at" if len(breaks) == 1 else f"{len(breaks)} breaks at"
        return f"{first} {listed(map(break_text, breaks))}"

    if added:
        return f"added {told(added)} and removed {told(removed)}"
    return f"removed {told(removed)} and added none"


def _moved(nouns: tuple[str, str], added: Iterable[str], removed: Iterable[str]) -> str:
    parts = []
    for verb, texts in (("added", list(added)), ("removed", list(removed))):
        if texts:
            noun = nouns[len(texts) > 1]
            parts.append(f"{verb} {len(texts)} {noun}: {listed(texts, 3)}")
    return " and ".join(parts)
