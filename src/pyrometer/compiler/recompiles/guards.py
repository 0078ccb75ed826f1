"""The guards of the compilations in use: how many of what type, and those that hold for fewer values than they need to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import structs

from pyrometer.compiler.log import CompileLog
from pyrometer.compiler.recompiles.frames import FrameHistory, LoggedCompilation, frame_histories
from pyrometer.compiler.recompiles.read import recompiles_in
from pyrometer.compiler.recompiles.record import FrameGuards, GuardSummary, Recompile, StrictGuard
from pyrometer.compiler.recompiles.strict import why_strict
from pyrometer.compiler.recompiles.tree import Guard, spoken
from pyrometer.quantity import counted

_EPOCH = re.compile(r"r\d+:")
_NUMBER = re.compile(r"\[['\"]?\d+['\"]?\]|\.\d+(?=\.[^\W\d])")
"""Which item of a list, or which numbered module, a text speaks of."""


def read_guards(log: CompileLog) -> GuardSummary:
    """Count the guards, and name the over-strict ones; those that failed in this log come first.

    Of a program that reset Dynamo only what was compiled after the last reset is in use.
    """
    histories = frame_histories(log)
    in_use = _in_use(histories)
    failed = _failed(recompiles_in(histories, log))
    frames = [_frame(compilation) for compilation in in_use]
    by_type = Counter[str]()
    for frame in frames:
        by_type.update(frame.by_type)
    return GuardSummary(
        by_type=dict(by_type.most_common()),
        total=sum(by_type.values()),
        per_compilation=frames,
        strict=_strict(in_use, failed),
    )


def with_eval_seconds(
    summary: GuardSummary, seconds: Mapping[str, float], slowest: Mapping[str, Sequence[str]] | None = None
) -> GuardSummary:
    """The same with measured times.

    Args:
        summary: of guards in use.
        seconds: one evaluation of the guards of a compilation, by its id as torch writes it.
        slowest: the inputs whose guards cost most, by the same ids.
    """
    frames = []
    for frame in summary.per_compilation:
        name = _EPOCH.sub("", frame.compile_id)
        dear = (slowest or {}).get(name, frame.slowest)
        frames.append(structs.replace(frame, eval_s=seconds.get(name, frame.eval_s), slowest=list(dear)))
    told = [frame.eval_s for frame in frames if frame.eval_s is not None]
    return structs.replace(summary, eval_s=sum(told) if told else None, per_compilation=frames)


def _in_use(histories: Sequence[FrameHistory]) -> list[LoggedCompilation]:
    latest = max(
        (compilation.id.epoch for history in histories for compilation in history.compilations), default=0
    )
    return [
        compilation
        for history in histories
        for compilation in history.compilations
        if compilation.guards is not None and compilation.id.epoch == latest
    ]


def _frame(compilation: LoggedCompilation) -> FrameGuards:
    by_type = Counter(guard.type for guard in compilation.guards or [])
    return FrameGuards(
        compile_id=compilation.id.text,
        total=sum(by_type.values()),
        by_type=dict(by_type.most_common()),
        cold_eval_s=compilation.cold_guards_s,
    )


def _failed(recompiles: Sequence[Recompile]) -> dict[str, Counter[str]]:
    """How often each guard failed, by the compilation that did not fit."""
    failed: dict[str, Counter[str]] = {}
    for recompile in recompiles:
        for cause in recompile.causes:
            failed.setdefault(cause.entry, Counter()).update(cause.all_failing)
    return failed


def _failed_texts(guard: Guard, texts: Counter[str]) -> Counter[str]:
    """What of a guard failed, and how often; torch words a tensor's check and the global state by what differs."""
    heads = {
        "TENSOR_MATCH": (f"tensor '{spoken(guard.source)}' ", f"expected type of '{spoken(guard.source)}' "),
        "GLOBAL_STATE": ("GLOBAL_STATE changed",),
    }.get(guard.type)
    if heads is None:
        return Counter({guard.words: texts[guard.words]} if guard.words in texts else {})
    return Counter({text: count for text, count in texts.items() if text.startswith(heads)})


def _strict(in_use: Sequence[LoggedCompilation], failed: Mapping[str, Counter[str]]) -> list[StrictGuard]:
    found: dict[object, tuple[int, StrictGuard]] = {}
    alike = dict[object, set[str]]()
    again = {compilation.id.of_frame for compilation in in_use if failed.get(compilation.id.text)}
    for compilation in in_use:
        texts = failed.get(compilation.id.text, Counter())
        for guard in compilation.guards or []:
            of_guard = _failed_texts(guard, texts)
            times = max(of_guard.values(), default=0)
            if not times and guard.type == "TENSOR_MATCH" and compilation.id.of_frame in again:
                continue  # the calls have shown which sizes vary
            why = why_strict(guard, compilation.facts, failed=of_guard, rest_at=compilation.code.resumes_at)
            if why is None:
                continue
            # Of a model that was switched over one flag stands for all; so does one item or module for all that are tied alike.
            what = (
                ("training", compilation.code)
                if guard.source.endswith(".training")
                else _NUMBER.sub("[…]", why)
            )
            alike.setdefault(what, set()).add(guard.source)
            if what not in found or found[what][0] < times:
                found[what] = times, _record(guard, why, times, compilation.id.text)
    return [
        structs.replace(strict, num_alike=len(alike[what]) - 1)
        for what, (_, strict) in sorted(found.items(), key=lambda item: -item[1][0])
    ]


def _record(guard: Guard, why: str, times: int, compile_id: str) -> StrictGuard:
    note = f" It failed {counted(times, 'time')} here." if times else ""
    return StrictGuard(
        guard=guard.words,
        type=guard.type,
        source=guard.source,
        why=why + note,
        compile_id=compile_id,
        num_failed=times,
    )
