"""Which files are linted: those named, and the Python files and notebooks below folders that are named."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pyrometer.errors import InputError
from pyrometer.rules.lint.ignored import Ignores, ignores_around
from pyrometer.rules.patterns import path_matches
from pyrometer.rules.settings import RuleSettings

SUFFIXES = (".py", ".ipynb")

SKIPPED_FOLDERS = (
    *(".*", "__pycache__", "__pypackages__", "node_modules", "site-packages", "venv", "env"),
    *("build", "dist", "_build", "buck-out", "*.egg-info"),
)
"""Folders within named ones that hold what others wrote or tools built; name one, and it is linted."""


class SourceFile(NamedTuple):
    """A file to lint.

    Attributes:
        path: to open it.
        shown: as people see it: below the working folder from there, with forward slashes.
    """

    path: Path
    shown: str


def files_of(paths: Iterable[str], settings: RuleSettings) -> list[SourceFile]:
    """The files that paths, folders and patterns lead to, each once, by name.

    What the user's `exclude` names is left out however it was reached; what a `.gitignore` or `.ignore` file names, where
    it was not named itself. A file that links lead to as well is told by its own name where that was reached too.

    Raises:
        InputError: there is no such path, it is a pipe or device, a pattern fits nothing, or a `.gitignore` is unreadable.
    """
    files: dict[str, SourceFile] = {}
    for name in paths:
        for path in _expanded(name):
            for file in _below(path, settings):
                one, identity = SourceFile(file, shown(file)), _identity(file)
                files[identity] = min(files.get(identity, one), one, key=_by_own_name)
    return sorted(files.values(), key=lambda source_file: source_file.shown)


def shown(path: Path) -> str:
    """A path as it is printed; odd bytes and control characters of a name are escaped."""
    whole = path.absolute()
    try:
        text = whole.relative_to(Path.cwd()).as_posix()
    except ValueError:
        text = whole.as_posix()
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _expanded(name: str) -> list[Path]:
    path = Path(name)
    if name and os.path.lexists(path):
        if _is_special(path):
            raise InputError(f"{name}: is a pipe or device; pass files and folders, or - for stdin")
        return [path]
    if glob.has_magic(name):
        hits = map(Path, sorted(glob.glob(name, recursive=True)))  # noqa: PTH207 - takes absolute patterns, and relative ones from here
        if files := [hit for hit in hits if not _is_special(hit)]:
            return files
        raise InputError(
            f"{name}: no file has this pattern; legal are files, folders and patterns such as 'src/**/*.py'"
        )
    raise InputError(
        f"{name or repr(name)}: there is no such file or folder; pass files, folders, or - for stdin"
    )


def _below(path: Path, settings: RuleSettings) -> Iterator[Path]:
    if settings.excludes(path):
        return
    if not path.is_dir():
        yield path
        return
    respect = settings.respect_gitignore
    whole = _whole(path)
    held = {os.fspath(path): ignores_around(whole, _whole(settings.root)) if respect else Ignores()}
    for folder, names, files in os.walk(path):  # follows no links, so that there are no loops
        here, whole, ignores = Path(folder), _whole(folder), held.pop(folder)
        if respect:
            ignores = ignores.within(whole, {*names, *files})
        names[:] = [
            name
            for name in sorted(names)
            if not _is_skipped(here / name, settings)
            and not ignores.leave_out(f"{whole}/{name}", is_folder=True)
        ]
        held.update((os.path.join(folder, name), ignores) for name in names)  # noqa: PTH118 - as os.walk spells it
        for name in files:
            if name.endswith(SUFFIXES) and not name.startswith("."):
                file = here / name
                if settings.excludes(file) or ignores.leave_out(f"{whole}/{name}", is_folder=False):
                    continue
                if file.is_file() or not file.exists():
                    yield file


def _is_skipped(folder: Path, settings: RuleSettings) -> bool:
    return path_matches(folder.name, SKIPPED_FOLDERS) or settings.excludes(folder)


def _whole(path: str | Path) -> str:
    """From the root, without `..` and links as they are written, with forward slashes."""
    return Path(os.path.abspath(path)).as_posix()  # noqa: PTH100 - takes `..` away


def _identity(path: Path) -> str:
    return os.path.realpath(path)


def _by_own_name(file: SourceFile) -> tuple[bool, str]:
    return os.path.abspath(file.path) != _identity(file.path), file.shown  # noqa: PTH100 - takes `..` away, too


def _is_special(path: Path) -> bool:
    """Whether reading it may wait for ever: a pipe, a socket, a device."""
    return path.exists() and not path.is_file() and not path.is_dir()
