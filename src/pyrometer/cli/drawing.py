"""How far a verb is, drawn on stderr by a process of its own.

What is observed has no thread of ours beside it then, nothing takes the interpreter's lock from it, and the bar moves on while a
library holds that lock. `progress.py` runs this file by its path and tells it lines on stdin, so it needs nothing but the
standard library: share, share at the end of the stage, expected seconds of the stage and its name, separated by tabs.
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import shutil
import signal
import sys
import threading
import time

SHOW_AFTER_S = 2.0
REDRAW_S = 0.25
LINE_S = 5.0
"""Between two lines where stderr is no terminal."""

MOST = 0.99
"""What is still going on is never shown as done."""

UNKNOWN_S = 10.0
"""How long a stage is taken to last that does not say."""

CLEAR = "\r\033[K"
CELLS = 20


class Course:
    """Where the bar stands: what was told last, and how far time has gone on from there."""

    def __init__(self, began_s: float) -> None:
        self.began_s = self._told_s = began_s
        self._share, self._until, self._expected_s = 0.0, 0.05, UNKNOWN_S
        self.what = "starting"

    def tell(
        self, now_s: float, share: float, until: float | None, expected_s: float | None, what: str
    ) -> None:
        """Take in what a verb says of itself; the bar never goes back.

        Args:
            now_s: on the clock of all other times here.
            share: done, 0 to 1.
            until: share at the end of the stage that is under way.
            expected_s: how long that stage usually lasts.
            what: its name.
        """
        self._share = max(self.share(now_s), min(share, MOST))
        self._until = max(self._share, min(MOST, (share + 1) / 2 if until is None else until))
        self._told_s, self._expected_s, self.what = now_s, max(expected_s or UNKNOWN_S, 0.1), what

    def share(self, now_s: float) -> float:
        """What was told, and the nearer to the end of the stage the longer nothing more is."""
        waited = max(now_s - self._told_s, 0.0) / self._expected_s
        return self._share + (self._until - self._share) * (1 - math.exp(-1.5 * waited))

    def left_s(self, now_s: float) -> float | None:
        """About how long it still takes, once enough is done to tell."""
        share, elapsed_s = self.share(now_s), now_s - self.began_s
        return elapsed_s * (1 - share) / share if share >= 0.1 and elapsed_s >= SHOW_AFTER_S else None


class Drawing:
    """What to write, and when: a bar on a terminal, lines elsewhere."""

    def __init__(self, course: Course, *, terminal: bool) -> None:
        self._course, self._terminal = course, terminal
        self._next_s = course.began_s + (SHOW_AFTER_S if terminal else LINE_S)
        self._drawn = False

    def tick(self, now_s: float, columns: int = 80) -> str:
        """The text that is due now; empty where none is."""
        if now_s < self._next_s:
            return ""
        self._next_s = max(self._next_s + LINE_S, now_s) if not self._terminal else now_s + REDRAW_S
        self._drawn = self._terminal
        share, what = self._course.share(now_s), self._course.what
        left_s = self._course.left_s(now_s)
        times = f"{now_s - self._course.began_s:.0f} s" + (
            "" if left_s is None else f", about {left_s:.0f} s left"
        )
        if not self._terminal:
            return f"{what}: {share:.0%}, {times}\n"
        done = round(share * CELLS)
        bar = "█" * done + "░" * (CELLS - done)
        tail = f"  {bar} {share:4.0%}  {times}"
        room = columns - 1 - len(tail)
        return (
            f"{CLEAR}{what[:room]:{min(max(room, 0), 36)}}{tail}"
            if room >= 8
            else f"{CLEAR}{share:4.0%} {times}"
        )

    def end(self) -> str:
        """What clears the bar away."""
        return CLEAR if self._drawn else ""


def parse(line: str) -> tuple[float, float | None, float | None, str]:
    r"""Read what the verb said.

    >>> parse("0.5\t0.7\t\ttracing")
    (0.5, 0.7, None, 'tracing')
    """
    share, until, expected_s, what = line.rstrip("\n").split("\t", 3)
    return float(share), float(until) if until else None, float(expected_s) if expected_s else None, what


def main(began_ago_s: float, terminal: bool) -> None:
    """Draw until stdin ends or the verb is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the verb, which says when it ends
    parent = os.getppid()
    course = Course(time.monotonic() - began_ago_s)
    drawing = Drawing(course, terminal=terminal)
    told: queue.Queue[str | None] = queue.Queue()

    def hear() -> None:
        for line in sys.stdin:
            told.put(line)
        told.put(None)

    threading.Thread(target=hear, daemon=True).start()
    while os.getppid() == parent:
        with contextlib.suppress(queue.Empty):
            line = told.get(timeout=REDRAW_S)
            if line is None:
                break
            course.tell(time.monotonic(), *parse(line))
        _write(drawing.tick(time.monotonic(), shutil.get_terminal_size().columns if terminal else 80))
    _write(drawing.end())


def _write(text: str) -> None:
    if text:
        sys.stderr.write(text)
        sys.stderr.flush()


if __name__ == "__main__":
    with contextlib.suppress(OSError):  # stderr went away: nobody looks any more
        main(float(sys.argv[1]), sys.argv[2] == "terminal")
