"""Sizes that torch keeps open, and the lines that constrain or fix them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import structs

from pyrometer.compiler.compile_id import CompileId
from pyrometer.compiler.log import CompileLog, LogEntry
from pyrometer.compiler.recompiles.record import SymbolicSize
from pyrometer.compiler.stack import logged_stack
from pyrometer.compiler.user_code import own_place

_NAME = re.compile(r"\b(?:z?[usf]f?\d+|zuf\d+)\b")
_KINDS = ("create_symbol", "create_unbacked_symbol", "guard_added_fast", "symbolic_shape_specialization")


def read_symbols(log: CompileLog) -> list[SymbolicSize]:
    """The symbols of every compilation, in order; of a compilation that was traced again those of the last attempt.

    The place is the user's line that fixed the symbol; if none did, the first one that constrained it.
    """
    last: dict[CompileId, int] = {}
    for entry in log.entries:
        if entry.compile_id is not None:
            last[entry.compile_id] = max(entry.attempt, last.get(entry.compile_id, 0))
    sizes: dict[tuple[CompileId, str], SymbolicSize] = {}
    for entry in log.of(*_KINDS):
        compile_id, content = entry.compile_id, entry.metadata
        if compile_id is not None and isinstance(content, dict) and entry.attempt == last[compile_id]:
            _take(sizes, compile_id, entry, content)
    return list(sizes.values())


def _take(
    sizes: dict[tuple[CompileId, str], SymbolicSize],
    compile_id: CompileId,
    entry: LogEntry,
    content: dict[str, Any],
) -> None:
    if entry.kind.startswith("create_"):
        symbol = str(content.get("symbol", ""))
        sizes.setdefault(
            (compile_id, symbol),
            SymbolicSize(
                compile_id=compile_id.text,
                symbol=symbol,
                source=str(content.get("source") or "made by the program"),
                value=str(content.get("val") or "unknown"),
                range=str(content.get("vr") or ""),
            ),
        )
        return
    for symbol in _symbols(content):
        size = sizes.get((compile_id, symbol))
        if size is not None:
            sizes[compile_id, symbol] = _constrained(size, entry.kind, content)


def _symbols(content: dict[str, Any]) -> Iterator[str]:
    yield from dict.fromkeys(_NAME.findall(f"{content.get('symbol') or ''} {content.get('expr') or ''}"))


def _constrained(size: SymbolicSize, kind: str, content: dict[str, Any]) -> SymbolicSize:
    place = own_place(logged_stack(content.get("user_stack")))
    constraints = list(size.constraints)
    fixed = size.specialized_to
    if kind == "symbolic_shape_specialization":
        fixed = str(content.get("value"))
    elif (expression := str(content.get("expr") or "")) and expression not in constraints:
        constraints.append(expression)
    decides = place is not None and (size.place is None or fixed != size.specialized_to)
    return structs.replace(
        size, specialized_to=fixed, constraints=constraints, place=place if decides else size.place
    )
