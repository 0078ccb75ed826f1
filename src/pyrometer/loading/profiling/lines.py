"""Where the time goes, by line: a second thread looks at the stack of the first from time to time.

Cheaper than tracing: the code runs as it is, and each look costs some tens of microseconds every two milliseconds (the record says
how much it was). The time since the last look is given to the innermost line of the user's on the stack. Code in C that
keeps the interpreter to itself delays a look, not what it is given.
"""

from __future__ import annotations

import linecache
import sys
import threading
import time
from types import FrameType, TracebackType
from typing import Self

from pyrometer.loading.profiling.record import LineShare
from pyrometer.quantity import Seconds
from pyrometer.source.ownership import owner_of
from pyrometer.text import shown_path

INTERVAL_S = 0.002

Place = tuple[str, str, int, str]
"""Stage, file, line, function."""


class LineSampler:
    """Looks at the lines that the thread that entered it is at.

    Attributes:
        stage: what the observed thread is at; it sets this itself. Nothing is counted while it is empty.
        seconds: time per place.
        cost_s: CPU time of the looking thread.
    """

    def __init__(self, interval_s: Seconds = INTERVAL_S) -> None:
        self.stage = ""
        self.seconds: dict[Place, Seconds] = {}
        self.cost_s = 0.0
        self._interval_s = interval_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="pyrometer-lines", daemon=True)

    def __enter__(self) -> Self:
        self._observed = threading.get_ident()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def shares(self, largest: int = 8) -> list[LineShare]:
        """The places that took most of the time."""
        total = sum(self.seconds.values())
        ranked = sorted(self.seconds.items(), key=lambda item: item[1], reverse=True)
        return [
            LineShare(
                place=f"{shown_path(file)}:{line}",
                function=function,
                source=linecache.getline(file, line).strip(),
                stage=stage,
                share=seconds / total,
            )
            for (stage, file, line, function), seconds in ranked[:largest]
        ]

    def _look(self) -> None:
        start = time.thread_time()
        last = time.perf_counter()
        while not self._ended.wait(self._interval_s):
            frame = sys._current_frames().get(self._observed)  # noqa: SLF001 - documented for this use
            stage, now = self.stage, time.perf_counter()
            if stage and frame is not None:
                place = (stage, *user_line(frame))
                self.seconds[place] = self.seconds.get(place, 0.0) + now - last
            last = now
            del frame  # it would keep the locals of the observed thread alive
        self.cost_s = time.thread_time() - start


def user_line(frame: FrameType) -> tuple[str, int, str]:
    """File, line and function of the innermost frame that is the user's.

    Where none is (a dataset of an installed package), the outermost one inside of what we called.
    """
    outermost: FrameType = frame
    current: FrameType | None = frame
    while current is not None:
        file = current.f_code.co_filename
        owner = owner_of(file, current.f_code.co_name)
        if owner == "ours":
            break
        if owner == "user":
            return file, current.f_lineno, current.f_code.co_name
        outermost = current
        current = current.f_back
    return outermost.f_code.co_filename, outermost.f_lineno, outermost.f_code.co_name
