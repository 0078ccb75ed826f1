"""Ranks that do not move: noticed from their logs, asked where they are, and who waits for whom told from their answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from pyrometer.quantity import Seconds
from pyrometer.source.ownership import owner_of
from pyrometer.workload.ranks.rank import folder_of
from pyrometer.workload.ranks.record import Stall, Waiting
from pyrometer.workload.script.startup._pyrometer_inside import kinds

HANG_AFTER_S = 60.0
TIMES_LONGEST = 10.0
"""A rank is asked only after this many times the longest pause that it has made before."""

LOOK_S = 0.5
ANSWER_S = 10.0
"""What a rank may take to answer; one that holds the interpreter's lock never does."""

_CHUNK = 1 << 20


@dataclass
class LogTail:
    """The end of a rank's event log, read on from where it was left."""

    path: Path
    rank: int
    words: int = kinds.HEADER_WORDS
    last_ns: int = 0
    longest_ns: int = 0
    over: bool = False

    def look(self) -> None:
        """Read what was added."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.words * kinds.LOG_WORD_BYTES)
                raw = file.read(_CHUNK)
        except OSError:
            return  # it has not begun
        rows = np.frombuffer(raw[: len(raw) // 16 * 16], dtype="<i8").reshape(-1, 2)
        unused = np.flatnonzero(rows[:, 1] == 0)
        rows = rows[: unused[0]] if len(unused) else rows
        self.words += rows.size
        kind = rows[:, 1] & kinds.KIND_MASK
        self.over |= bool((kind == kinds.ENDED).any())
        moved = rows[(kind >= kinds.FORWARD_BEGIN) & (kind <= kinds.LAST_PHASE_KIND), 0]
        if not len(moved):
            return
        times = np.concatenate(([self.last_ns or moved[0]], moved))
        self.longest_ns = max(self.longest_ns, int(np.diff(times).max()))
        self.last_ns = int(moved[-1])

    def silent_s(self, now_ns: int, hang_after_s: Seconds) -> Seconds:
        """For how long it has been silent, if that is too long for it; else 0."""
        if self.over or not self.last_ns:
            return 0.0
        silent_s = (now_ns - self.last_ns) * 1e-9
        return silent_s if silent_s > max(hang_after_s, TIMES_LONGEST * self.longest_ns * 1e-9) else 0.0


@dataclass
class StallWatch:
    """Watches the logs of all ranks on this machine while they run, as a context; a stall is told as soon as it is seen."""

    folder: Path
    num_ranks: int
    hang_after_s: Seconds = HANG_AFTER_S
    tell: Callable[[Stall], None] = lambda _stall: None
    stalls: list[Stall] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._tails = [
            LogTail(folder_of(self.folder, rank) / "events", rank) for rank in range(self.num_ranks)
        ]
        self._over = threading.Event()
        self._began_s = time.monotonic()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._silent_since: int | None = None

    def __enter__(self) -> StallWatch:  # noqa: PYI034 - typing.Self needs Python 3.11
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_S):
            for tail in self._tails:
                tail.look()
            self._note_resumed()
            now_ns = time.perf_counter_ns()
            silent = [(tail.silent_s(now_ns, self.hang_after_s), tail) for tail in self._tails]
            silent_s, tail = max(silent, key=lambda one: one[0])
            if silent_s and self._silent_since is None:
                self._silent_since = sum(each.words for each in self._tails)
                self._ask(silent_s)

    def _note_resumed(self) -> None:
        """A stall is over when any rank has moved; the next is asked about anew."""
        if self._silent_since is not None and sum(tail.words for tail in self._tails) > self._silent_since:
            self._silent_since = None
            self.stalls[-1] = msgspec.structs.replace(self.stalls[-1], resumed=True)

    def _ask(self, silent_s: Seconds) -> None:
        after_s = time.monotonic() - self._began_s
        asked = [tail for tail in self._tails if tail.path.exists() and not tail.over]
        for tail in asked:
            tail.path.with_name("events.ask").touch()
        answers = {tail.rank: tail.path.with_name("events.answer") for tail in asked}
        until = time.monotonic() + ANSWER_S
        while not all(path.exists() for path in answers.values()) and time.monotonic() < until:
            if self._over.wait(LOOK_S):
                break
        told = {
            rank: msgspec.json.decode(path.read_bytes()) for rank, path in answers.items() if path.exists()
        }
        for path in answers.values():
            path.unlink(missing_ok=True)
        silent = [rank for rank in answers if rank not in told]
        stall = judge(told, silent, after_s=after_s, silent_s=silent_s)
        self.stalls.append(stall)
        self.tell(stall)


def judge(
    answers: dict[int, dict[str, Any]], unanswered: Sequence[int], *, after_s: Seconds, silent_s: Seconds
) -> Stall:
    """Who waits, and for whom: a rank waits in a collective that it has begun and a member of the group has not.

    Args:
        answers: by rank, as `asked` writes them.
        unanswered: ranks that gave no answer.
        after_s: since the launch.
        silent_s: for which nothing had moved.
    """
    open_ = {rank: one for rank, told in answers.items() if (one := _open(told)) is not None}
    late: dict[int, Waiting] = {rank: Waiting(rank=rank) for rank in unanswered}
    for entry in open_.values():
        for rank in set(answers) - set(open_):
            if _last(answers[rank], entry["group"]) < entry["sequence"] and _is_member(
                answers, entry["group"], rank
            ):
                late[rank] = _stands(rank, answers[rank])
    # Where every rank waits, those that have come less far in their group hold up the others.
    if not late and open_:
        furthest = max(one["sequence"] for one in open_.values())
        late = {
            rank: _stands(rank, answers[rank], one)
            for rank, one in open_.items()
            if one["sequence"] < furthest
        }
    waiting = [_stands(rank, answers[rank], one) for rank, one in open_.items() if rank not in late]
    if not open_:
        late = {rank: _stands(rank, told) for rank, told in answers.items()} | late
    return Stall(
        after_s=after_s,
        silent_s=silent_s,
        waiting=waiting,
        missing=[late[rank] for rank in sorted(late)],
    )


def _open(told: dict[str, Any]) -> dict[str, Any] | None:
    """The collective that a rank is in: the first that is not done."""
    return next((one for one in told["collectives"] if one["is_open"] and not one["is_p2p"]), None)


def _last(told: dict[str, Any], group: str) -> int:
    """How far a rank has come in a group."""
    return max((one["sequence"] for one in told["collectives"] if one["group"] == group), default=0)


def _is_member(answers: dict[int, dict[str, Any]], group: str, rank: int) -> bool:
    """Whether a rank belongs to a group, as any of them says; the whole world is known by other names, and all belong to it."""
    for told in answers.values():
        if group in told["groups"]:
            return rank in msgspec.json.decode(told["groups"][group])
    return True


def _stands(rank: int, told: dict[str, Any], collective: dict[str, Any] | None = None) -> Waiting:
    """A rank with the innermost line of the user's own."""
    frames = told["stack"]
    own = next((one for one in frames if owner_of(one[0], one[2]) == "user"), frames[0] if frames else None)
    said: dict[str, Any] = {} if own is None else {"place": f"{own[0]}:{own[1]}", "function": own[2]}
    if collective is not None:
        sizes = collective["sizes"]
        said |= {
            "operation": collective["operation"],
            "group": collective["group"],
            "sequence": collective["sequence"],
            "elements": sizes[0] if sizes else [],
        }
    return Waiting(rank=rank, **said)
