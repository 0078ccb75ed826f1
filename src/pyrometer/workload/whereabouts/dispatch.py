"""Torch's dispatch mode, without the compiler that the first operator below one would import, for a second or two."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def _outside_dynamo(dispatch: Callable[..., Any]) -> Callable[..., Any]:
    """The function, and all that it calls, out of Dynamo's sight: between graphs it would compile it for every operator."""
    # The evaluator of frames is there before Dynamo is, and remembers.
    evaluator = torch._C._dynamo.eval_frame  # noqa: SLF001
    strategy, action = (getattr(evaluator, name, None) for name in ("_FrameExecStrategy", "_FrameAction"))
    if strategy is None or action is None:
        skip = getattr(torch, "_disable_dynamo", None)
        return dispatch if skip is None else skip(dispatch, recursive=True)
    evaluator.set_code_exec_strategy(dispatch.__code__, strategy(action.SKIP, action.SKIP))
    return dispatch


class DispatchMode(TorchDispatchMode):
    """Sees every operator, of compiled functions too: they run as they are written where there is one.

    Dynamo leaves the mode alone, as it does torch's own, and learns nothing while there is one: it would give up for good
    on every function that it first meets under a mode.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # torch's way to skip it imports it

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)  # type: ignore[no-untyped-call]
        dispatch = cls.__dict__.get("__torch_dispatch__")
        if dispatch is not None:
            cls.__torch_dispatch__ = _outside_dynamo(dispatch)  # type: ignore[method-assign]

    @_outside_dynamo
    def __enter__(self) -> Any:
        _EAGER.begin()
        try:
            return super().__enter__()  # type: ignore[no-untyped-call]
        except BaseException:
            _EAGER.end()
            raise

    @_outside_dynamo
    def __exit__(self, *error: object) -> None:
        try:
            super().__exit__(*error)  # type: ignore[no-untyped-call]
        finally:
            _EAGER.end()


class _Eager:
    """Compiled functions run as they are written, from the first mode that begins to the last that ends, in any order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._modes = 0
        self._stance: contextlib.AbstractContextManager[Any] | None = None

    def begin(self) -> None:
        """One mode more; without Dynamo, or within what it runs, nothing is to be done."""
        with self._lock:
            self._modes += 1
            running = getattr(torch._C._dynamo.eval_frame, "get_eval_frame_callback", None)  # noqa: SLF001
            if self._stance is None and "torch._dynamo" in sys.modules and running is not None:
                self._stance = (
                    torch.compiler.set_stance("force_eager") if running() in {None, False} else None
                )

    def end(self) -> None:
        """One mode less; what was set before comes back with the last."""
        with self._lock:
            self._modes -= 1
            if self._modes == 0 and self._stance is not None:
                self._stance.__exit__(None, None, None)
                self._stance = None


_EAGER = _Eager()
