"""A call after a module has been imported, whoever imports it."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


class AfterImport:
    """A finder that finds nothing itself: it lets the others find `name`, and calls back when that is imported.

    It leaves `sys.meta_path` with the first import of `name`.
    """

    def __init__(self, name: str, callback: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._callback = callback

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What the other finders find."""
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                self._wrap(spec.loader)
                return spec
        return None

    def _wrap(self, loader: Any) -> None:
        execute = loader.exec_module
        callback = self._callback

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module
            execute(module)
            callback(module)

        # Python leaves frames of the import system out of tracebacks and stack levels; this is one of them.
        exec_module.__code__ = exec_module.__code__.replace(
            co_filename="<frozen importlib._bootstrap_external>"
        )
        loader.exec_module = exec_module


def after_import(name: str, callback: Callable[[ModuleType], None]) -> None:
    """Call `callback(module)` after the first import of `name`."""
    sys.meta_path.insert(0, AfterImport(name, callback))
