"""Calls that fit no compilation and run eagerly without a word.

Under `torch.compiler.set_stance("eager_on_recompile")`, and once a frame has been compiled too often, torch runs such calls
eagerly; no log, no metric and no callback tells. But torch lets itself be told after each lookup. When one found nothing, the
very next frame is looked at: if it is the function itself, and not the compiler, the call runs eagerly, and its own locals say
which guards failed.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Mapping, Sequence
from types import CodeType, FrameType, TracebackType
from typing import Any

from pyrometer.compiler.inspection.record import SilentEager
from pyrometer.compiler.private import cache_entries
from pyrometer.compiler.recompiles.live import failing_guards, in_short
from pyrometer.compiler.recompiles.tree import spoken
from pyrometer.compiler.stack import own_name

_MAX_PATTERNS = 32
"""Different ways of not fitting that are kept of one function; further calls are only counted."""


class GuardWatch:
    """Counts lookups while it is entered, and finds the calls that ran eagerly although compiled code is there.

    It costs a call of Python per lookup, and some tens of microseconds per call that fits nothing. A profiler in Python
    that is already set on the thread keeps its place; what then cannot be attributed is counted in `unattributed`.

    >>> import torch
    >>> double = torch.compile(lambda x: 2 * x, backend="eager", dynamic=False)
    >>> _ = double(torch.ones(2))
    >>> with torch.compiler.set_stance("eager_on_recompile"), GuardWatch() as watch:
    ...     _ = double(torch.ones(3))
    >>> [(silent.function, silent.calls, silent.failing) for silent in watch.silent()]
    [('<lambda>', 1, ["tensor 'x' size mismatch at index 0. expected 2, actual 3"])]
    """

    def __init__(self, *, measure: bool = False) -> None:
        """Prepare.

        Args:
            measure: also measure what the guards cost, once per compilation that is used; takes some milliseconds each.
        """
        self.lookups = 0
        self.misses = 0
        self.unattributed = 0
        self.guard_s: dict[str, float] = {}
        """Seconds of one evaluation of the guards, by compile id as torch writes it."""
        self.slowest: dict[str, list[str]] = {}
        """The inputs whose guards cost most, by compile id."""
        self.unavailable: list[str] = []
        self._measure = measure
        self._lock = threading.Lock()
        self._timed: set[CodeType] = set()
        self._calls: dict[CodeType, int] = {}
        self._failing: dict[CodeType, dict[tuple[str | None, ...], list[str]]] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> GuardWatch:  # noqa: PYI034 - Self comes with Python 3.11
        cache_entries.never_compile(self._on_lookup, self._on_frame)
        if not self._stack.enter_context(cache_entries.on_lookup(self._on_lookup)):
            self.unavailable += cache_entries.missing()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        if sys.getprofile() == self._on_frame:
            sys.setprofile(None)  # the frame that it waited for never came

    def silent(self) -> list[SilentEager]:
        """What was found so far, the most frequent first."""
        with self._lock:
            found = [
                SilentEager(
                    function=own_name(code.co_name),
                    file=code.co_filename,
                    line=code.co_firstlineno,
                    calls=calls,
                    failing=in_short(text for texts in self._failing[code].values() for text in texts),
                )
                for code, calls in self._calls.items()
            ]
        return sorted(found, key=lambda silent: -silent.calls)

    def _on_lookup(self, found: bool) -> None:
        with self._lock:
            self.lookups += 1
            self.misses += not found
        if found and not self._measure:
            return
        if sys.getprofile() is not None:
            with self._lock:
                self.unattributed += not found
            return
        sys.setprofile(self._on_frame)

    def _on_frame(self, frame: FrameType, event: str, _argument: Any) -> None:
        """The first frame behind a lookup: of the function, of what was compiled for it, or of the compiler."""
        if event != "call":
            return
        sys.setprofile(None)
        try:
            self._look_at(frame)
        except Exception:  # noqa: BLE001 - it would surface in the user's call
            with self._lock:
                self.unattributed += 1

    def _look_at(self, frame: FrameType) -> None:
        code, f_locals = frame.f_code, frame.f_locals
        entries = cache_entries.entries_of(code)
        if not entries:
            self._time(code, f_locals)
            return
        failing = tuple(entry.first_failing(f_locals) for entry in entries)
        if None in failing:
            return
        with self._lock:
            self._calls[code] = self._calls.get(code, 0) + 1
            known = self._failing.setdefault(code, {})
        if failing not in known and len(known) < _MAX_PATTERNS:
            known[failing] = [text for entry in entries for text in failing_guards(entry, f_locals)]

    def _time(self, code: CodeType, f_locals: Mapping[str, Any]) -> None:
        """Measure the guards of the compilation that this code is, once."""
        if not self._measure or code in self._timed:
            return
        self._timed.add(code)
        for original in cache_entries.compiled_codes():
            for entry in cache_entries.entries_of(original):
                if entry.code is code and entry.fits(f_locals):
                    self.guard_s[entry.compile_id] = cache_entries.guard_eval_seconds(entry, f_locals)
                    self.slowest[entry.compile_id] = _shares(cache_entries.slowest_guards(entry, f_locals))


def _shares(costs: Sequence[tuple[str, float]]) -> list[str]:
    """The inputs with their shares: singled out, guards take longer than within the whole, where torch cuts corners."""
    total = sum(seconds for _, seconds in costs) or 1.0
    return [f"{spoken(source)}: {seconds / total:.0%} of the guards' time" for source, seconds in costs]
