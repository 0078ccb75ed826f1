"""The points of torch that are observed; the one place that knows torch's inside.

| phase | point | kind |
|---|---|---|
| forward | `torch.nn.Module.__call__` | instrumented |
| backward | `torch.autograd.graph._engine_run_backward`, else `torch.autograd.backward` | private, instrumented |
| data wait | `_BaseDataLoaderIter.__next__` | private, instrumented |
| optimizer | `register_optimizer_step_pre_hook`, `…_post_hook` | public hooks |

A point that is missing or not as expected stays alone: its time counts as `rest`, and the log says so.
"""

from __future__ import annotations

import sys

from . import kinds
from .device_time import DeviceTime
from .instrument import CannotInstrumentError, instrument
from .log import EventLog
from .memory import MemorySampler
from .observer import Observer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FunctionType
    from typing import Any

    from .instrument import Switch


def install(torch: Any, observer: Observer) -> tuple[Switch, list[str]]:
    """Observe torch.

    Returns:
        A switch for all of it, on at first, and the names out of `HOOK_POINTS` that could not be observed.
    """
    switches = {name: _attach(attach, torch, observer) for name, attach in _POINTS.items()}

    def switch_all(on: bool) -> None:
        for switch in filter(None, switches.values()):
            switch(on)
        observer.watch_garbage(on)

    switch_all(True)
    return switch_all, [name for name, switch in switches.items() if switch is None]


def _attach(attach: Callable[[Any, Observer], Switch], torch: Any, observer: Observer) -> Switch | None:
    try:
        return attach(torch, observer)
    except (AttributeError, KeyError, CannotInstrumentError):
        return None


def compile_ns() -> int | None:
    """Time spent in torch.compile's compilers; 0 when it was never used, `None` where torch does not say."""
    utils = sys.modules.get("torch._dynamo.utils")
    if utils is None:
        return 0
    spent = getattr(utils, "calculate_time_spent", None)
    return None if spent is None else round(spent().get("total_wall_time", 0.0) * 1e9)


def _observe_modules(torch: Any, observer: Observer) -> Switch:
    call: FunctionType = torch.nn.Module.__call__
    return instrument(call, kinds.FORWARD_BEGIN, observer)


def _observe_backward(torch: Any, observer: Observer) -> Switch:
    run: FunctionType = getattr(torch.autograd.graph, "_engine_run_backward", torch.autograd.backward)
    return instrument(run, kinds.BACKWARD_BEGIN, observer)


def _observe_loader(torch: Any, observer: Observer) -> Switch:
    fetch: FunctionType = torch.utils.data.dataloader._BaseDataLoaderIter.__next__  # noqa: SLF001 - see the table
    return instrument(fetch, kinds.DATA_BEGIN, observer)


def _observe_optimizers(_torch: Any, observer: Observer) -> Switch:
    module: Any = sys.modules["torch.optim.optimizer"]
    register_before = module.register_optimizer_step_pre_hook
    register_after = module.register_optimizer_step_post_hook
    handles: list[Any] = []

    def switch(on: bool) -> None:
        while handles:
            handles.pop().remove()
        if on:
            handles.extend(
                (register_before(observer.begin_optimizer), register_after(observer.end_optimizer))
            )

    return switch


def hide_from_compiler(torch: Any, *classes: type) -> None:
    """Let Dynamo run the methods of our classes as they are instead of compiling them."""
    interface = torch._C._dynamo.eval_frame  # noqa: SLF001 - no public call does this
    if hasattr(interface, "set_code_exec_strategy"):
        action = interface._FrameAction  # noqa: SLF001
        strategy = interface._FrameExecStrategy(action.SKIP, action.SKIP)  # noqa: SLF001

        def skip(code: Any) -> None:
            interface.set_code_exec_strategy(code, strategy)
    else:
        skip = interface.skip_code
    for kind in classes:
        for member in vars(kind).values():
            if hasattr(member, "__code__"):
                skip(member.__code__)


def _hide_observer(torch: Any, _observer: Observer) -> Switch:
    hide_from_compiler(torch, Observer, EventLog, MemorySampler, DeviceTime)
    return lambda _on: None


_POINTS: dict[str, Callable[[Any, Observer], Switch]] = {
    "module calls": _observe_modules,
    "backward": _observe_backward,
    "data loader": _observe_loader,
    "optimizer steps": _observe_optimizers,
    "torch.compile": _hide_observer,
}
