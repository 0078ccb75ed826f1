"""Rewritten functions in a running program: their code is exchanged in memory for a while; files are never touched."""

from __future__ import annotations

import gc
import linecache
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Self

from msgspec.structs import replace

from pyrometer.advice import Advice
from pyrometer.compiler.advice.apply import apply_rewrite
from pyrometer.compiler.breaks.record import Break
from pyrometer.compiler.stack import own_name
from pyrometer.errors import InputError
from pyrometer.place import Place

TRIED = frozenset({"exact", "tolerance"})
"""How exact a rewrite must be to be tried without anybody's leave."""


@dataclass(frozen=True)
class _Exchange:
    function: FunctionType
    old: CodeType
    new: CodeType


class Swap:
    """Functions and their rewritten code; as a context the code is exchanged, and put back at its end.

    Entering it costs about a microsecond per function, and Dynamo keeps what it compiled for either code.
    """

    def __init__(self, exchanges: Sequence[_Exchange]) -> None:
        self._exchanges = exchanges

    @property
    def functions(self) -> set[tuple[str, str]]:
        """File and name of what is exchanged."""
        return {(exchange.old.co_filename, exchange.old.co_name) for exchange in self._exchanges}

    def __enter__(self) -> Self:
        for exchange in self._exchanges:
            exchange.function.__code__ = exchange.new
        return self

    def __exit__(self, *_: object) -> None:
        for exchange in self._exchanges:
            exchange.function.__code__ = exchange.old


@dataclass(frozen=True)
class Prepared:
    """Rewrites that can be carried out, and those that cannot."""

    swap: Swap
    tried: list[Advice]
    skipped: list[str]


def prepare_rewrites(breaks: Iterable[Break]) -> Prepared:
    """Carry out the first sure rewrite of each root break in a copy of the source, and find the living functions.

    What may change results in meaning is not tried.
    """
    tried, skipped, exchanges = list[Advice](), list[str](), list[_Exchange]()
    by_file: dict[str, list[tuple[Break, Advice]]] = {}
    for graph_break in breaks:
        rewrite = next(
            (advice for advice in graph_break.advice if advice.replaces and advice.fix_class in TRIED), None
        )
        if rewrite is not None and not graph_break.chained:
            by_file.setdefault(graph_break.file, []).append((graph_break, rewrite))
    for file, pairs in by_file.items():
        source, done = _rewritten(file, pairs, skipped)
        found = (
            _exchanges(
                file, source, [advice.where.line or 0 for advice in done if advice.where is not None], skipped
            )
            if done
            else []
        )
        exchanges += found
        tried += done if found else []
    return Prepared(Swap(exchanges), tried, skipped)


def _rewritten(file: str, pairs: list[tuple[Break, Advice]], skipped: list[str]) -> tuple[str, list[Advice]]:
    """The source with the rewrites, from the last line up so that earlier lines stay where they are."""
    source, done = "".join(linecache.getlines(file)), list[Advice]()
    for graph_break, rewrite in sorted(pairs, key=lambda pair: -pair[0].line):
        try:
            source = apply_rewrite(source, rewrite, graph_break.line)
        except InputError as error:
            skipped.append(str(error))
            continue
        done.append(replace(rewrite, where=Place(file=file, line=graph_break.line)))
    return source, done[::-1]


def _exchanges(file: str, source: str, lines: list[int], skipped: list[str]) -> list[_Exchange]:
    try:
        new = {_name(code): code for code in _codes(compile(source, file, "exec", dont_inherit=True))}
    except SyntaxError as error:
        skipped.append(f"{file}: with the rewrites it is no Python any more: {error.msg}")
        return []
    exchanges = []
    for function in _living(file):
        old = function.__code__
        if not any(_holds(old, line) for line in lines):
            continue
        code = new.get(_name(old))
        if code is None or code.co_freevars != old.co_freevars:
            skipped.append(f"{file}:{old.co_firstlineno} {old.co_name}: its code could not be found again")
            continue
        exchanges.append(_Exchange(function, old, code))
    return exchanges


def _living(file: str) -> list[FunctionType]:
    """Every function of a file that is alive; the rests behind breaks are Dynamo's, and made anew from the function."""
    return [
        function
        for function in gc.get_objects()
        if type(function) is FunctionType  # isinstance would wake lazy objects
        and function.__code__.co_filename == file
        and own_name(function.__code__.co_name) == function.__code__.co_name
    ]


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _name(code: CodeType) -> str:
    """The qualified name; before Python 3.11 code knows only its own."""
    return getattr(code, "co_qualname", code.co_name)


def _holds(code: CodeType, line: int) -> bool:
    """Whether a line is the function's own, and not that of a function in it."""
    return any(line == number for _, _, number in code.co_lines())
