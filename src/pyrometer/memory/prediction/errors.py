"""When a program cannot be rehearsed without data."""

from __future__ import annotations

import contextlib
import linecache
import traceback
from collections.abc import Iterator
from pathlib import Path

from pyrometer.errors import InputError, UserProgramError
from pyrometer.memory.private.fake_tensors import why_data_is_needed
from pyrometer.quantity import Seconds, format_seconds
from pyrometer.workload.whereabouts.nearest import is_users


class NotPredictableError(InputError):
    """The program needs the values of tensors, so it cannot be rehearsed without running it."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"cannot be predicted without running: {why}; "
            "pass fallback=True to run real steps instead, for the program as written"
        )
        self.why = why


class RehearsalTooLongError(InputError):
    """Running the program without data takes longer than it may: many small operators do."""

    def __init__(self, limit_s: Seconds) -> None:
        super().__init__(
            f"running it without data takes longer than the {format_seconds(limit_s)} that the budget leaves for it; "
            "`pyrometer memory` takes the time"
        )


@contextlib.contextmanager
def unpredictable_told() -> Iterator[None]:
    """Tell apart programs that need data from those that fail by themselves.

    Raises:
        NotPredictableError: with the user's line that needs data.
        UserProgramError: the program failed for another reason.
    """
    try:
        yield
    except UserProgramError as error:
        cause = error.__cause__ or error
        why = why_data_is_needed(cause)
        if why is None:
            raise
        raise NotPredictableError(f"{why}{_line(cause)}") from error


def _line(error: BaseException) -> str:
    """The user's innermost line on the way to the error."""
    frames = [
        (frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if is_users(frame.f_code)
    ]
    if not frames:
        return ""
    frame, line = frames[-1]
    name = frame.f_code.co_filename
    source = linecache.getline(name, line).strip()
    return f" ({Path(name).name}:{line}: {source})" if source else f" ({Path(name).name}:{line})"
