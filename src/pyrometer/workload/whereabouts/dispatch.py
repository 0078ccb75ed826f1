"""Torch's dispatch mode, without the compiler that the first operator below one would import, for a second or two."""

from __future__ import annotations

import contextlib
import sys
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
        with contextlib.ExitStack() as stack:
            stack.enter_context(_nothing_compiled())
            entered = super().__enter__()  # type: ignore[no-untyped-call]
            self.__dict__.setdefault("_stances", []).append(stack.pop_all())
        return entered

    @_outside_dynamo
    def __exit__(self, *error: object) -> None:
        with self.__dict__["_stances"].pop():
            super().__exit__(*error)  # type: ignore[no-untyped-call]


def _nothing_compiled() -> contextlib.AbstractContextManager[Any]:
    """Compiled functions run as they are written meanwhile; nothing to do without Dynamo, or within what it runs."""
    running = getattr(torch._C._dynamo.eval_frame, "get_eval_frame_callback", None)  # noqa: SLF001
    if "torch._dynamo" not in sys.modules or running is None or running() not in {None, False}:
        return contextlib.nullcontext()
    stance: contextlib.AbstractContextManager[Any] = torch.compiler.set_stance("force_eager")
    return stance
