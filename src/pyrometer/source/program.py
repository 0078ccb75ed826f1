"""The user's own files that a program is made of: the one it begins with, and what that imports from beside it."""

from __future__ import annotations

import ast
import importlib.util
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pyrometer.errors import InputError
from pyrometer.source.module import DEFAULTS, Module
from pyrometer.source.ownership import owner_of
from pyrometer.text import shown_path

MOST_FILES = 200
"""Of a program, the nearest to the entry first; more would be a repository, which `pyrometer lint` reads."""


def program_modules(
    entries: Iterable[Path], limits: Mapping[str, float] = DEFAULTS
) -> tuple[list[Module], list[str]]:
    """Parse the entries and the user's files that they import, near ones first.

    Imports are followed by their text, without importing: absolute ones from the folders of the entries and above
    within their packages, relative ones from the importing file.

    Returns:
        The modules, and a note for each file that could not be read.
    """
    waiting = deque(
        path.resolve() for path in entries if path.suffix == ".py" and owner_of(str(path)) == "user"
    )
    roots = list(dict.fromkeys(_root(path) for path in waiting))
    seen: set[Path] = set()
    modules: list[Module] = []
    notes: list[str] = []
    while waiting and len(modules) < MOST_FILES:
        path = waiting.popleft()
        if path in seen:
            continue
        seen.add(path)
        try:
            module = Module.parse(shown_path(path), path.read_text(encoding="utf-8-sig"), limits)
        except (InputError, OSError, UnicodeDecodeError) as error:
            notes.append(f"source of {shown_path(path)} could not be read: {error}")
            continue
        modules.append(module)
        waiting += [found for found in _imported(module.tree, path, roots) if owner_of(str(found)) == "user"]
    return modules, notes


def module_file(dotted: str, cwd: Path) -> Path | None:
    """A module's file: below the working directory, else where it is installed; nothing is imported but its parents."""
    beside = next(iter(_files(dotted, [cwd])), None)
    if beside is not None:
        return beside
    try:
        spec = importlib.util.find_spec(dotted)
    except (ImportError, ValueError):
        return None  # loading the target says what is wrong with it
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None


def _imported(tree: ast.Module, path: Path, roots: list[Path]) -> Iterator[Path]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files(alias.name, roots)
        elif isinstance(node, ast.ImportFrom):
            above = path.parents[node.level - 1 : node.level] if node.level else roots
            stem = node.module or ""
            yield from _files(stem, list(above))
            for alias in node.names:
                yield from _files(f"{stem}.{alias.name}".lstrip("."), list(above))


def _files(dotted: str, roots: list[Path]) -> Iterator[Path]:
    if not dotted:
        return
    for root in roots:
        place = root.joinpath(*dotted.split("."))
        for candidate in (place.with_suffix(".py"), place / "__init__.py"):
            if candidate.is_file():
                yield candidate.resolve()


def _root(path: Path) -> Path:
    """The folder that absolute imports of a file start from: above its outermost package."""
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder != folder.parent:
        folder = folder.parent
    return folder
