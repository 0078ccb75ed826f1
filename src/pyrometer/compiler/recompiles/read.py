"""Recompilations of a log: every cause with all failing guards, and the inputs that changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pyrometer.compiler.compile_id import parse_compile_id
from pyrometer.compiler.log import CompileLog
from pyrometer.compiler.recompile_limit import RecompileLimit
from pyrometer.compiler.recompiles.changed import Failed, changed_inputs
from pyrometer.compiler.recompiles.failing import Failure, failures
from pyrometer.compiler.recompiles.frames import FrameHistory, LoggedCompilation, frame_histories, known_files
from pyrometer.compiler.recompiles.reason import Reported, read_reason
from pyrometer.compiler.recompiles.record import LimitReached, Recompile, RecompileCause
from pyrometer.compiler.recompiles.tree import Guard, origin
from pyrometer.compiler.stack import logged_stack
from pyrometer.compiler.user_code import own_stack, with_source
from pyrometer.place import Place
from pyrometer.source.ownership import owner_of

_COMPILER = re.compile(r"/torch/_dynamo/")


def read_recompiles(log: CompileLog) -> list[Recompile]:
    """Every time that a frame was compiled once more, in order.

    Torch reports the first failing guard of each earlier compilation; the others are found by comparing its guards with what
    the new compilation's guards say of the values.
    """
    return recompiles_in(frame_histories(log), log)


def recompiles_in(histories: Iterable[FrameHistory], log: CompileLog) -> list[Recompile]:
    """The same from the frames of a log, where they were read before."""
    files = known_files(log)
    found = [
        (compilation, _recompile(history, compilation, files, is_live=log.is_live))
        for history in histories
        for compilation in history.compilations
        if compilation.limit is None and (compilation.reasons or _again(history, compilation))
    ]
    order = {number: place for place, number in enumerate(log.compile_ids())}
    return [recompile for _, recompile in sorted(found, key=lambda pair: order[pair[0].id])]


def read_limits(log: CompileLog) -> list[LimitReached]:
    """The frames that torch gave up because they had been compiled too often."""
    files = known_files(log)
    limits = [
        _reached(history, compilation, compilation.limit, files)
        for history in frame_histories(log)
        for compilation in history.compilations
        if compilation.limit is not None
    ]
    return list(
        {(limit.function, limit.file, limit.line, limit.compile_id): limit for limit in limits}.values()
    )


def _again(history: FrameHistory, compilation: LoggedCompilation) -> bool:
    """Whether there were compilations to use again, although torch gave no reason."""
    return compilation.guards is not None and bool(history.before(compilation))


def _recompile(
    history: FrameHistory, compilation: LoggedCompilation, files: frozenset[str], *, is_live: bool
) -> Recompile:
    causes, failing = _causes(history, compilation, files)
    return Recompile(
        compile_id=compilation.id.text,
        function=compilation.code.function,
        file=compilation.code.file,
        line=compilation.code.line,
        causes=causes,
        changed_inputs=changed_inputs(compilation, history.before(compilation), failing),
        called_from=[with_source(place, is_live=is_live) for place in _callers(compilation)],
        compile_s=compilation.seconds,
    )


def _causes(
    history: FrameHistory, compilation: LoggedCompilation, files: frozenset[str]
) -> tuple[list[RecompileCause], list[Failed]]:
    """One cause per earlier compilation, in torch's order; and all that failed, for the inputs."""
    earlier = {
        logged_compilation.id.text: logged_compilation for logged_compilation in history.before(compilation)
    }
    reasons = {_entry(reason, compilation): reason for reason in compilation.reasons}
    causes, failing = list[RecompileCause](), list[Failed]()
    for entry in reasons or dict.fromkeys(reversed(earlier)):
        old = earlier.get(entry)
        guards = [] if old is None else old.guards or []
        reported = read_reason(reasons[entry], guards, files) if entry in reasons else None
        others = _others(guards, compilation, reported)
        if reported is not None:
            failing.append(Failed(entry, _as_failure(reported), reported))
        failing += [Failed(entry, failure) for failure in others]
        if reported is not None or others:
            causes.append(_cause(entry, reported, others, files))
    return causes, failing


def _others(guards: list[Guard], compilation: LoggedCompilation, reported: Reported | None) -> list[Failure]:
    if compilation.guards is None:
        return []
    held = {(guard.type, guard.text) for guard in compilation.guards}
    text = "" if reported is None else reported.guard.strip()
    return [
        failure
        for failure in failures(guards, compilation.facts, held)
        if failure.text.strip() != text and not (text and _same_guard(failure, text))
    ]


def _same_guard(failure: Failure, told: str) -> bool:
    """Global state and aliasing are one guard each, of which torch words the parts in its own order."""
    return any(
        told.startswith(head) and failure.text.startswith(head)
        for head in ("GLOBAL_STATE changed", "Duplicate tensors found")
    )


def _cause(
    entry: str, reported: Reported | None, others: list[Failure], files: frozenset[str]
) -> RecompileCause:
    first = others[0] if reported is None else _as_failure(reported)
    texts = ([] if reported is None else [reported.guard]) + [failure.text for failure in others]
    place: Place | None = origin(others[0].guard.comment, files) if reported is None else reported.place
    return RecompileCause(
        entry=entry,
        guard=first.text.strip(),
        all_failing=list(dict.fromkeys(text.strip() for text in texts)),
        kind=first.kind,
        place=place,
    )


def _as_failure(reported: Reported) -> Failure:
    return Failure(reported.guard, reported.kind, reported.subjects, Guard("", reported.guard))


def _entry(reason: str, compilation: LoggedCompilation) -> str:
    """The compilation that a reason speaks of, told apart from those before a reset."""
    name = read_reason(reason).entry
    compile_id = parse_compile_id(name, compilation.id.epoch)
    return name if compile_id is None else compile_id.text


def _callers(compilation: LoggedCompilation) -> list[Place]:
    """The user's frames above the compiled one, as far as torch tells them."""
    whole = _above_compiler(logged_stack(compilation.whole_stack))
    stack = list(own_stack(whole or logged_stack(compilation.stack[:-1])))
    code = compilation.code
    while stack and (stack[-1].function, stack[-1].file) == (code.function, code.file):
        stack.pop()  # a rest behind a break is called by the function itself
    return stack


def _above_compiler(stack: Sequence[Place]) -> Sequence[Place]:
    """The program's part of a whole stack, down to the call that was to be compiled."""
    own = [number for number, place in enumerate(stack) if owner_of(place.path) == "user"]
    start = own[-1] + 1 if own else 0
    inside = (
        number
        for number in range(start, len(stack))
        if _COMPILER.search(stack[number].path.replace("\\", "/"))
    )
    return stack[: next(inside, len(stack))]


def _reached(
    history: FrameHistory, compilation: LoggedCompilation, limit: RecompileLimit, files: frozenset[str]
) -> LimitReached:
    causes, _ = _causes(history, compilation, files)
    last = f"; the last guard that failed: {causes[0].guard}" if causes else ""
    what = f"{limit.name} reached" if limit.name else "the recompile limit was reached"
    return LimitReached(
        function=compilation.code.function,
        file=compilation.code.file,
        line=compilation.code.line,
        limit=limit.value,
        reason=f"{what}{last}",
        compile_id=compilation.id.text,
        causes=causes,
    )
