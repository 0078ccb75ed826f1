"""Answers a question from outside, for a rank that has not moved for long: where its threads are, in which collectives."""

from __future__ import annotations

import os
import sys
from _thread import start_new_thread
from time import sleep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INTERVAL_S = 0.25
MOST_FRAMES = 60
COLLECTIVES_KEPT = 16


def answer_when_asked(log: str, main_thread: int) -> None:
    """Wait, on a thread that Python's own lists do not show, until a file `….ask` lies beside the log; then answer in `….answer`."""
    start_new_thread(_wait, (log, main_thread, os.getpid()))


def _wait(log: str, main_thread: int, pid: int) -> None:
    question, answer = log + ".ask", log + ".answer"
    while os.getpid() == pid and os.path.isdir(os.path.dirname(log)):  # noqa: PTH112, PTH120 - pathlib is not loaded here
        if os.path.exists(question):  # noqa: PTH110 - see above
            _answer(answer, main_thread)
            os.unlink(question)  # noqa: PTH108 - see above
        sleep(INTERVAL_S)


def _answer(path: str, main_thread: int) -> None:
    import json

    told: dict[str, Any] = {"stack": _stack(main_thread), "groups": {}, "collectives": []}
    try:
        told |= _flights()
    except Exception as error:  # noqa: BLE001 - the stack alone tells much; the reader says what is missing
        told["without_flights"] = f"{type(error).__name__}: {error}"
    with open(path + ".part", "w") as file:  # noqa: PTH123 - see above
        json.dump(told, file)
    os.replace(path + ".part", path)  # noqa: PTH105 - see above


def _stack(thread: int) -> list[tuple[str, int, str]]:
    """The frames of a thread, the innermost first."""
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - the one way to another thread's stack
    frames: list[tuple[str, int, str]] = []
    while frame is not None and len(frames) < MOST_FRAMES:
        code = frame.f_code
        frames.append((code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return frames


def _flights() -> dict[str, Any]:
    """The last collectives of each process group, as torch's flight recorder has them."""
    import pickle

    import torch

    # Private: torch has no public call; what it pickled itself is read back.
    recorded = pickle.loads(torch._C._distributed_c10d._dump_fr_trace())  # type: ignore[attr-defined]  # noqa: S301, SLF001
    entries = recorded["entries"][-COLLECTIVES_KEPT:]
    return {
        "groups": {name: group["ranks"] for name, group in recorded["pg_config"].items()},
        "collectives": [
            {
                "group": entry["process_group"][0],
                "sequence": entry["collective_seq_id"],
                "operation": entry["profiling_name"],
                "sizes": entry["input_sizes"],
                "is_open": not entry["retired"],
                "is_p2p": entry["is_p2p"],
            }
            for entry in entries
        ],
    }
