"""An end for a run of the program without data: of thousands of small operators it takes minutes."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from contextvars import ContextVar

from torch.nn.modules.module import register_module_forward_pre_hook

from pyrometer.memory.prediction.errors import RehearsalTooLongError
from pyrometer.quantity import Seconds

_limit_s: ContextVar[Seconds] = ContextVar("seconds of a rehearsal", default=math.inf)


@contextlib.contextmanager
def rehearsals_within(limit_s: Seconds) -> Iterator[None]:
    """Give up rehearsals that take longer."""
    token = _limit_s.set(limit_s)
    try:
        yield
    finally:
        _limit_s.reset(token)


@contextlib.contextmanager
def ended_in_time() -> Iterator[None]:
    """Stop at the first call of a module after the time is over.

    Between modules, since torch aborts the process where an operator on tensors without data raises; and by a hook for all
    modules, since hooks of its own keep a module from its fast path.

    Raises:
        RehearsalTooLongError: from that call.
    """
    limit_s = _limit_s.get()
    ends_s = time.monotonic() + limit_s

    def check(*_call: object) -> None:
        if time.monotonic() > ends_s:
            raise RehearsalTooLongError(limit_s)

    if math.isinf(limit_s):
        yield
        return
    hook = register_module_forward_pre_hook(check)
    try:
        yield
    finally:
        hook.remove()
