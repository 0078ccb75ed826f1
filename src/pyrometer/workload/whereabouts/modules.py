"""Which module's forward is running, by torch's global forward hooks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch import nn
from torch.nn.modules import module as hooks


class ModuleStack:
    """Paths of the modules whose forward is running, the innermost last.

    Args:
        found: told of every model that was not known when its forward began.
    """

    def __init__(self, found: Callable[[nn.Module], None]) -> None:
        self._found = found
        self._paths: dict[nn.Module, str] = {}
        self._running: list[tuple[nn.Module, str]] = []

    @property
    def innermost(self) -> str | None:
        """The path of the innermost running module; `None` outside of all, empty for a model itself."""
        return self._running[-1][1] if self._running else None

    @property
    def known(self) -> Iterable[nn.Module]:
        """All modules of the models that ran."""
        return self._paths.keys()

    def know(self, model: nn.Module) -> None:
        """Name a model's modules by their paths in it."""
        for name, part in model.named_modules():
            self._paths.setdefault(part, name)

    @contextlib.contextmanager
    def followed(self) -> Iterator[None]:
        """Follow modules as they begin and end."""
        handles = [
            hooks.register_module_forward_pre_hook(self._begin),
            hooks.register_module_forward_hook(self._end, always_call=True),
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()
            self._running.clear()

    def _begin(self, module: nn.Module, _args: Any) -> None:
        path = self._paths.get(module)
        if path is None:
            self._found(module)
            path = self._paths.get(module, "")
        self._running.append((module, path))

    def _end(self, module: nn.Module, _args: Any, _output: Any) -> None:
        # With an exception on the way, modules inside may not have told their end.
        if any(running is module for running, _ in self._running):
            while self._running.pop()[0] is not module:
                pass
