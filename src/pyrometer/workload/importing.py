"""Importing the user's files and packages, and keeping apart what each target brought along.

A directory of the user's is on `sys.path`, and the modules that came from it are in `sys.modules`, only while one of
its targets is loaded or has an open session; so two checkouts of one program (`before/bench.py` and `after/bench.py`,
both with their own `model.py`) live in one process, and everything is as before afterwards.

A file outside any package becomes the module `pyrometer.workload.importing.<stem>__<path in base32>`. The name cannot
collide, and it leads back to the file: a worker process that unpickles one of its classes imports this module first,
whose finder then loads the file.
"""

from __future__ import annotations

import base64
import contextlib
import importlib.abc
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from pyrometer.errors import TargetError

# Makes this module the parent package of the user's files.
__path__: list[str] = []


def is_target_module(name: str) -> bool:
    """Whether a module is a user's file that was loaded as a target, and so bears a name below ours.

    >>> is_target_module(f"{__name__}.train__abc"), is_target_module(__name__)
    (True, False)
    """
    return name.startswith(f"{__name__}.")


class TargetImports:
    """The directory that a target imports from, and the modules that were found in it.

    Attributes:
        directory: at the head of `sys.path` while the target is current.
        settings: torch's global settings that importing the target changed, by name; `None` before the import.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = str(directory)
        self.settings: dict[str, Any] | None = None
        self._modules: dict[str, ModuleType] = {}
        self._earlier: frozenset[str] | None = None

    def enter(self) -> None:
        """Put the directory at the head of `sys.path`, and its modules back in place."""
        if self._earlier is None:
            self._earlier = frozenset(sys.modules)
        sys.path.insert(0, self.directory)
        sys.modules.update(self._modules)

    def leave(self) -> None:
        """Take the directory and its modules away again."""
        self._modules = {name: module for name, module in sys.modules.items() if self._is_ours(name)}
        for name in self._modules:
            del sys.modules[name]
        if self.directory in sys.path:
            sys.path.remove(self.directory)

    def _is_ours(self, name: str) -> bool:
        package = name.partition(".")[0]
        if package in (self._earlier or ()):
            return False
        root = sys.modules.get(package)
        places = list(getattr(root, "__path__", None) or [getattr(root, "__file__", None) or ""])
        return any(os.path.dirname(place) == self.directory for place in places)  # noqa: PTH120 - thousands of names


_known: dict[tuple[str, Path], TargetImports] = {}
_current: TargetImports | None = None


def imports_of(place: str, directory: Path) -> TargetImports:
    """The imports of the file or module `place`: always the same object, so that it is imported once.

    Each has its own, also beside another in the same directory: what importing does (to torch's settings, say) it does
    for both, as if each ran alone.
    """
    return _known.setdefault((place, directory), TargetImports(directory))


def current_imports() -> TargetImports | None:
    """Whose directory is on `sys.path` now."""
    return _current


def switch_imports(to: TargetImports | None) -> None:
    """Make a target's directory and modules current in place of whichever are."""
    global _current  # noqa: PLW0603 - sys.path and sys.modules are global, and so is who holds them
    if to is _current:
        return
    if _current is not None:
        _current.leave()
    _current = to
    if to is not None:
        to.enter()


def import_root(file: Path) -> Path:
    """The directory from which a file's siblings are imported: the file's own, or that above its outermost package."""
    directory = file.parent
    while (directory / "__init__.py").exists():
        directory = directory.parent
    return directory


def import_file(file: Path) -> ModuleType:
    """Import a file, by its dotted name when it is inside a package, else under a name that cannot collide.

    Raises:
        TargetError: another file is already imported under the dotted name.
    """
    root = import_root(file)
    if root == file.parent:
        return importlib.import_module(module_name(file))
    parts = file.relative_to(root).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    module = importlib.import_module(name)
    if Path(module.__file__ or "").resolve() != file:
        raise TargetError(
            f"{file}: a module {name} is already imported from {module.__file__}; rename the package"
        )
    return module


def module_name(file: Path) -> str:
    """The name of a file's module.

    >>> file = Path("/home/me/train.py")
    >>> file_of(module_name(file)) == file
    True
    """
    encoded = base64.b32encode(os.fsencode(file)).decode().rstrip("=").lower()
    stem = "".join(c if c.isalnum() else "_" for c in file.stem)
    return f"{__name__}.{stem}__{encoded}"


def file_of(name: str) -> Path:
    """The file of a module that `module_name` named."""
    encoded = name.rpartition("__")[2].upper()
    return Path(os.fsdecode(base64.b32decode(encoded + "=" * (-len(encoded) % 8))))


@contextlib.contextmanager
def imported_anew(place: str) -> Iterator[None]:
    """Within, a target is imported as if for the first time; afterwards what was imported of it before is in place again.

    Args:
        place: absolute path of its file, or the dotted name of its module.
    """
    before = current_imports()
    known = {key: _known.pop(key) for key in list(_known) if key[0] == place}
    switch_imports(None)
    name = module_name(Path(place)) if place.endswith(".py") else place
    own = sys.modules.pop(name, None)
    try:
        yield
    finally:
        switch_imports(None)
        sys.modules.pop(name, None)
        if own is not None:
            sys.modules[name] = own
        for key in [key for key in _known if key[0] == place]:
            del _known[key]
        _known.update(known)
        switch_imports(before)


def spec_of_target(name: str) -> ModuleSpec | None:
    """The spec of a user's file from the name of its module; None for any other module."""
    return importlib.util.spec_from_file_location(name, file_of(name)) if is_target_module(name) else None


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the user's files by their module names, also in worker processes that know nothing but the name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of the file that the name encodes."""
        del path, target
        if not is_target_module(fullname):
            return None
        file = file_of(fullname)
        if str(file.parent) not in sys.path:
            # Only in a worker process; here its target is current.
            sys.path.insert(0, str(file.parent))
        return spec_of_target(fullname)


sys.meta_path.append(_Finder())
