"""Programs that do not allow to follow what autograd saves: transforms of `torch.func` refuse saved-tensor hooks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar

from pyrometer.memory.recording.allocation import AllocationLog

L = TypeVar("L", bound=AllocationLog)

UNFOLLOWED = (
    "torch.func transforms do not allow to follow what autograd saves: activations count as temporaries"
)


class UnfollowedSavedTensorsError(Exception):
    """The program uses a transform that refuses saved-tensor hooks."""


@contextlib.contextmanager
def refusal_of_hooks() -> Iterator[None]:
    """Tell the refusal of saved-tensor hooks from other failures of the user's program.

    Raises:
        UnfollowedSavedTensorsError: that is why the body failed.
    """
    try:
        yield
    except Exception as error:
        if "saved tensor hooks" in str(error.__cause__ or error):
            raise UnfollowedSavedTensorsError from error
        raise


def with_or_without_hooks(record: Callable[[bool], L]) -> L:
    """Record with saved tensors followed, or else without, which the log then says."""
    try:
        return record(True)
    except UnfollowedSavedTensorsError:
        log = record(False)
        log.notes.append(UNFOLLOWED)
        return log
