"""What `.gitignore` and `.ignore` files leave out of folders that are searched."""

from __future__ import annotations

import codecs
import itertools
import os
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from pyrometer.errors import InputError
from pyrometer.rules.lint.gitignore import GitPattern, read_patterns, verdict

OWN, GIT, REPOSITORY = ".ignore", ".gitignore", ".git"


class Patterns(NamedTuple):
    """The patterns of one file, and the whole folder that they count from, with a slash at its end."""

    base: str
    patterns: list[GitPattern]


class Ignores(NamedTuple):
    """The patterns that hold in a folder: its own and those of the folders around it, the innermost first.

    Attributes:
        own: of `.ignore` files, which decide first.
        git: of `.gitignore` files, and last of the repository's `info/exclude`.
    """

    own: tuple[Patterns, ...] = ()
    git: tuple[Patterns, ...] = ()

    def leave_out(self, path: str, *, is_folder: bool) -> bool:
        """Whether a whole path within the folder is left out."""
        for base, patterns in (*self.own, *self.git):
            said = verdict(patterns, path[len(base) :], is_folder=is_folder)
            if said is not None:
                return said
        return False

    def within(self, folder: str, names: Collection[str]) -> Ignores:
        """What holds in a folder, by the files of these names in it; what is above a repository says nothing in it."""
        own, git = self
        base = folder.rstrip("/") + "/"
        if REPOSITORY in names:
            exclude = f"{base}{REPOSITORY}/info/exclude"
            git = (_patterns(base, exclude),) if os.path.isfile(exclude) else ()  # noqa: PTH113 - may not be readable
        if GIT in names:
            git = (_patterns(base, base + GIT), *git)
        if OWN in names:
            own = (_patterns(base, base + OWN), *own)
        return Ignores(own, git)


def ignores_around(folder: str, project: str) -> Ignores:
    """What the folders around a whole path say in it, from the root of its repository down.

    Where there is no repository they begin at the project's folder, if that is around it. A folder that they leave out
    was named on purpose: then they say nothing.
    """
    around = [parent.as_posix() for parent in (Path(folder), *Path(folder).parents)]
    top = next((one for one in around if os.path.exists(f"{one}/{REPOSITORY}")), None)  # noqa: PTH110 - may not be readable
    if top is None:
        top = project if project in around else folder
    path = around[: around.index(top) + 1][::-1]
    held = Ignores()
    for outer, inner in itertools.pairwise(path):
        names = [name for name in (OWN, GIT, REPOSITORY) if os.path.exists(f"{outer}/{name}")]  # noqa: PTH110 - as above
        held = held.within(outer, names)
        if held.leave_out(inner, is_folder=True):
            held = Ignores()
    return held


def _patterns(base: str, file: str) -> Patterns:
    try:
        data = Path(file).read_bytes()
    except OSError as error:
        raise InputError(
            f"{file}: cannot be opened: {error.strerror or error}; mend it, or set respect-gitignore = false in "
            "[tool.pyrometer.rules]"
        ) from error
    text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
    return Patterns(base, read_patterns(text))
