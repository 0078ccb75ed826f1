"""Functions that were compiled before a recording began, and run in it: the recording holds nothing of their graphs and breaks."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType
from typing import Any

from pyrometer.compiler.log import CompileLog
from pyrometer.compiler.private import cache_entries
from pyrometer.compiler.recompiles import silent
from pyrometer.compiler.stack import own_name
from pyrometer.compiler.wrappers import MEANT, WRAPPER, WRAPPER_FILE
from pyrometer.place import place_text
from pyrometer.source.ownership import owner_of

_OBSERVERS = frozenset({cache_entries.__file__, silent.__file__})
"""Others that listen to look-ups are called in between."""

_NO_GRAPHS = frozenset({"torch", "stdlib"})
"""Whose functions hold nothing that Dynamo would put into a graph: where it gave one up, no graph was lost."""


class EarlierCode:
    """What Dynamo knows at the moment when this is made, and which of it runs from then on.

    Known are functions with compilations that are ready, and functions that were looked at and given up.
    """

    def __init__(self) -> None:
        self._functions: dict[int, CodeType] = {}
        """By the identity of the code that runs: the function, or what was compiled of it."""
        self._by_compile_id: dict[str, CodeType] = {}
        self._kept: list[CodeType] = []
        self._ran: dict[int, CodeType] = {}
        for function in cache_entries.compiled_codes():
            entries = cache_entries.entries_of(function)
            if not entries and owner_of(function.co_filename, function.co_name) in _NO_GRAPHS:
                continue  # Dynamo only glanced at it
            codes = [entry.code for entry in entries if entry.code is not None] or [function]
            self._by_compile_id.update((entry.compile_id, function) for entry in entries)
            self._functions.update((id(code), function) for code in codes)
            self._kept += codes  # an identity is one only while its object lives

    def __bool__(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self._functions)

    @contextlib.contextmanager
    def watching_calls(self) -> Iterator[None]:
        """Look at every call of this thread; slows Python down, so that it is for a step or two."""
        if not self or sys.getprofile() is not None:
            yield
            return
        cache_entries.never_compile(self._on_call)
        sys.setprofile(self._on_call)
        try:
            yield
        finally:
            sys.setprofile(None)

    @contextlib.contextmanager
    def watching_lookups(self) -> Iterator[None]:
        """Look at what runs after each look-up that found a compilation; costs microseconds per call of compiled code.

        To be entered behind a `GuardWatch`, which takes the next call for the user's.
        """
        if not self:
            yield
            return
        cache_entries.never_compile(self._on_lookup, self._on_next_call)
        with cache_entries.on_lookup(self._on_lookup):
            try:
                yield
            finally:
                if sys.getprofile() == self._on_next_call:
                    sys.setprofile(None)

    def take_regions(self, compile_ids: Iterable[str], log: CompileLog) -> None:
        """Compiled code that a profile shows, and that the log does not hold.

        Args:
            compile_ids: as torch writes them.
            log: of the recording.
        """
        recorded = {compile_id._replace(epoch=0).text for compile_id in log.compile_ids()}
        for name in compile_ids:
            if name in self._by_compile_id and name not in recorded:
                function = self._by_compile_id[name]
                self._ran[id(function)] = function

    def names(self) -> list[str]:
        """The functions that ran, each once, with the lines that they begin at: `model.py:12 forward`."""
        return sorted({_name(function) for function in self._ran.values()})

    def _on_call(self, frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call":
            function = self._functions.get(id(frame.f_code))
            if function is not None:
                self._ran[id(function)] = function

    def _on_lookup(self, found: bool) -> None:
        if found and sys.getprofile() is None:
            sys.setprofile(self._on_next_call)

    def _on_next_call(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename not in _OBSERVERS:
            sys.setprofile(None)
            self._on_call(frame, event, argument)


def _name(function: CodeType) -> str:
    if function.co_name == WRAPPER and function.co_filename.replace("\\", "/").endswith(WRAPPER_FILE):
        return MEANT
    return f"{place_text(function.co_filename, function.co_firstlineno)} {own_name(function.co_name)}"
