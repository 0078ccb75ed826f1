"""TARGET: what a user names on the command line, and how it becomes a workload.

::

    file.py:factory             a function (or object) of a file
    package.module:factory      … of a module that can be imported from the working directory or is installed
    model.pt2                   an exported program, with the example inputs that it was exported with
    script.py -- arguments      a script, to be observed as it runs

A factory is called without arguments and returns a `Workload`, a `(model, inputs)` pair, or a bare `nn.Module` that
has `example_inputs` (an attribute or a method); the name may also lead to such an object itself.

`parse_target` imports no torch, so that a mistyped target fails at once.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pyrometer.errors import TargetError
from pyrometer.record import Record, doc

Kind = Literal["file", "module", "exported", "script"]

MOST_NAMES = 8
"""Of the factories of a file, in a message of one line."""

FORMS = "file.py:factory, package.module:factory, an exported program (.pt2), or script.py -- its arguments"


class TargetSpec(Record, frozen=True, kw_only=True):
    """What a fresh process needs to load the same target; start it in `cwd`.

    >>> TargetSpec(text="json:dumps", cwd="/").target().factory
    'dumps'
    """

    text: Annotated[str, doc("the target as the user wrote it")]
    cwd: Annotated[str, doc("working directory that relative paths start from")]
    args: Annotated[list[str], doc("arguments of a script")] = []

    def target(self) -> Target:
        """Parse it again.

        Raises:
            TargetError: it no longer leads anywhere.
        """
        return parse_target(self.text, self.args, cwd=Path(self.cwd))


class Target(Record, frozen=True, kw_only=True):
    """A TARGET taken apart."""

    spec: TargetSpec
    kind: Kind
    place: Annotated[str, doc("absolute path of the file, or the dotted name of the module")]
    factory: Annotated[str | None, doc("name inside the file or module, dotted for an attribute")] = None

    @property
    def text(self) -> str:
        """As the user wrote it."""
        return self.spec.text


def parse_target(text: str, script_args: Sequence[str] = (), *, cwd: Path | None = None) -> Target:
    """Take a target apart and check that its file exists; nothing is imported or run.

    Args:
        text: the target.
        script_args: what follows `--`.
        cwd: where relative paths start from; by default the working directory.

    Raises:
        TargetError: it has no legal form, or there is no such file; says what is near.

    >>> parse_target("json:dumps").kind
    'module'
    """
    directory = Path.cwd() if cwd is None else cwd
    location, name = _split(text)
    kind = _kind(text, location, name)
    if script_args and kind != "script":
        raise TargetError(f"{text}: arguments after -- are for scripts, and this is not one; leave them out")
    place = location if kind == "module" else str(_existing_file(text, directory, location))
    if kind == "script":
        _refuse_definitions(text, Path(place))
    spec = TargetSpec(text=text, cwd=str(directory), args=list(script_args))
    return Target(spec=spec, kind=kind, place=place, factory=name)


def entries_of(target: Target) -> tuple[Path, ...]:
    """The file that a target begins with; none for an exported program, which has no source."""
    if target.kind == "exported":
        return ()
    if target.kind != "module":
        return (Path(target.place),)
    from pyrometer.source.program import module_file  # what takes a target apart starts fast

    path = module_file(target.place, Path(target.spec.cwd))
    return () if path is None else (path,)


def factories_of(text: str, path: Path) -> str:
    """The factories of a file as targets, for a sentence; empty where it has none."""
    from pyrometer.source.factories import factories, read_tree

    tree = read_tree(path)
    names = [] if tree is None else factories(tree)
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(f"{text}:{name}" for name in names[:MOST_NAMES]) + more


def nearest(name: str, names: Iterable[str], ending: str = "") -> str:
    """`; did you mean …?` with the nearest of some names and their common ending, or nothing.

    >>> nearest("wrok", ["work", "main"])
    "; did you mean 'work'?"
    """
    near = difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean {near[0] + ending!r}?" if near else ""


def _split(text: str) -> tuple[str, str | None]:
    """Location and name; colons before `.py:` belong to the path."""
    head, dot_py, tail = text.rpartition(".py:")
    if dot_py:
        return head + ".py", tail
    if text.endswith((".py", ".pt2")):
        return text, None
    location, colon, name = text.partition(":")
    return location, name if colon else None


def _kind(text: str, location: str, name: str | None) -> Kind:
    if name is not None and not all(part.isidentifier() for part in name.split(".")):
        problem = "no name follows the colon" if not name else f"{name!r} is not a name"
        raise TargetError(f"{text}: {problem}; a target is {FORMS}")
    if location.endswith(".pt2"):
        if name is not None:
            raise TargetError(f"{text}: an exported program has no factory; write {location}")
        return "exported"
    if location.endswith(".py"):
        return "script" if name is None else "file"
    if name is not None and all(part.isidentifier() for part in location.split(".")):
        return "module"
    raise TargetError(f"{text or '(empty)'}: not a target{_hint(location, name)}; a target is {FORMS}")


def _hint(location: str, name: str | None) -> str:
    if location.endswith((".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".onnx")):
        return " (weights alone do not say what to run: write a factory that loads them)"
    if name is None and location and all(part.isidentifier() for part in location.split(".")):
        return f" (a module needs the name of a factory: {location}:NAME)"
    return ""


def _refuse_definitions(text: str, path: Path) -> None:
    """A file that only defines things does nothing as a script."""
    from pyrometer.source.factories import read_tree, runs_something

    tree = read_tree(path)
    names = factories_of(text, path)
    if names and tree is not None and not runs_something(tree):
        raise TargetError(f"{text}: it defines things and runs none of them; name what to run: {names}")


def _existing_file(text: str, directory: Path, location: str) -> Path:
    path = directory / location
    if path.is_file():
        return path.resolve()
    if path.is_dir():
        raise TargetError(f"{text}: {location} is a directory; a target is {FORMS}")
    if not path.parent.is_dir():
        raise TargetError(f"{text}: there is no directory {os.path.relpath(path.parent, directory)}")
    # By their stems: the same ending makes any two names alike.
    others = [file.stem for file in path.parent.iterdir() if file.suffix == path.suffix]
    near = nearest(path.stem, others, path.suffix)
    raise TargetError(f"{text}: there is no file {location}{near}")
