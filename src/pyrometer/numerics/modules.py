"""Which module's forward is running and what it gave; modules and parameters by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from pyrometer.workload.whereabouts.modules import ModuleStack

Gave = Callable[[str, nn.Module, Any], None]


class ModuleWatch(ModuleStack):
    """Follows the modules of a program; one that nobody named is taken for the root of a model when it first runs.

    Args:
        gave: told the path of each module, the module and its output, as its forward ends.
    """

    def __init__(self, gave: Gave) -> None:
        super().__init__(self.know)
        self._gave = gave
        self._parts: dict[str, nn.Module] = {}
        self._first_runs: dict[str, int] = {}
        self.parameters: dict[int, str] = {}  # full name by id

    def know(self, model: nn.Module, prefix: str = "") -> None:
        """Name a model's modules and parameters by their paths in it."""
        inner = getattr(model, "_orig_mod", model)
        self._paths.setdefault(model, prefix)
        for name, part in inner.named_modules(prefix=prefix):
            path = self._paths.setdefault(part, name.replace("_orig_mod.", ""))
            self._parts.setdefault(path, part)
        for name, parameter in inner.named_parameters(prefix=prefix):
            self.parameters.setdefault(id(parameter), name.replace("_orig_mod.", ""))

    def order(self, path: str) -> int:
        """Number of the module's first run among those of all modules; one that never ran comes last."""
        return self._first_runs.get(path, len(self._first_runs))

    def module(self, path: str) -> nn.Module | None:
        """The module of a path."""
        return self._parts.get(path)

    def _begin(self, module: nn.Module, args: Any) -> None:
        super()._begin(module, args)
        self._first_runs.setdefault(self._paths[module], len(self._first_runs))

    def _end(self, module: nn.Module, args: Any, output: Any) -> None:
        super()._end(module, args, output)
        self._gave(self._paths.get(module, ""), module, output)
