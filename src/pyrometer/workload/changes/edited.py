"""A target whose source files were edited: imported anew in this process from other text; no file is touched."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from pyrometer.workload.importing import imported_anew, spec_of_target
from pyrometer.workload.loading import load_workload
from pyrometer.workload.target import Target
from pyrometer.workload.workload import Workload


class _Edited(SourceFileLoader):
    """Loads a module from a text in the place of its file's; never from or into a cache of bytecode."""

    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self.text = text

    def get_code(self, fullname: str) -> CodeType:
        del fullname
        code: CodeType = compile(self.text, self.path, "exec", dont_inherit=True)
        return code


class _EditedFinder(importlib.abc.MetaPathFinder):
    """Stands before all other finders, and answers for the edited files alone."""

    def __init__(self, texts: Mapping[Path, str]) -> None:
        self.texts = {str(path.resolve()): text for path, text in texts.items()}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of an edited file, with a loader of its text."""
        spec = spec_of_target(fullname) or PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            return None
        text = self.texts.get(str(Path(spec.origin).resolve()))
        if text is None:
            return None
        spec.loader = _Edited(fullname, spec.origin, text)
        spec.cached = None
        return spec


def load_edited(target: Target, texts: Mapping[Path, str]) -> Workload:
    """The workload of a target as if some of its files held other text.

    All of the target's own modules are imported anew, so that a workload that was loaded from it before keeps its own.

    Args:
        target: what `load_workload` takes, from a file or a module.
        texts: the new text of each edited file.

    Raises:
        TargetError: as `load_workload` does.
        UserProgramError: the edited code raised where it was imported, or its factory did.
        InputError: the workload was put together wrongly.
    """
    with imported_anew(target.place), _finding(_EditedFinder(texts)):
        return load_workload(target)


@contextlib.contextmanager
def _finding(finder: Any) -> Iterator[None]:
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
