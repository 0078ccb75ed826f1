"""What a change consists of: hunks of its files, of which any part can be put on the base."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated

from pyrometer.errors import InputError
from pyrometer.guard.gate import Gate
from pyrometer.guard.revisions import git
from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc

_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class Hunk(Record, frozen=True, kw_only=True):
    """One change of a file: some lines in place of others, or the whole file where it is new, gone or no text."""

    file: str
    line: Annotated[int | None, doc("first line on the head's side; null for a whole file")] = None
    base_start: Annotated[int, doc("first line that it replaces, counted from 0")] = 0
    base_count: int = 0
    lines: Annotated[list[str], doc("that stand there on the head's side, with their ends")] = []

    @property
    def is_whole_file(self) -> bool:
        """Whether it cannot be taken apart."""
        return self.line is None

    @property
    def place(self) -> str:
        """As messages name it.

        >>> Hunk(file="model.py", line=3).place, Hunk(file="data.bin").place
        ('model.py:3', 'data.bin')
        """
        return self.file if self.line is None else f"{self.file}:{self.line}"


class Blame(Record, frozen=True, kw_only=True):
    """The hunks that make a benchmark worse."""

    benchmark: str
    metric: str
    hunks: Annotated[list[Hunk], doc("no smaller part of the change shows the regression")]
    num_hunks: Annotated[int, doc("of the whole change")]
    num_trials: Annotated[int, doc("parts that were run")]
    gate: Annotated[Gate, doc("of the whole change")]
    elapsed_s: Seconds = 0.0


def hunks_between(root: Path, base: str, head: str) -> list[Hunk]:
    """The hunks that lead from one commit to another, file by file."""
    changed = git(root, "diff", "--no-renames", "--name-status", "-z", base, head).split("\0")
    found: list[Hunk] = []
    for status, file in zip(changed[::2], changed[1::2], strict=False):
        lines = _lines_of(root, base, head, file) if status == "M" else []
        found += lines or [Hunk(file=file)]
    return found


def _lines_of(root: Path, base: str, head: str, file: str) -> list[Hunk]:
    """Hunks of a text; none where git tells none, as of one that is no text."""
    told = git(root, "diff", "--no-color", "--no-ext-diff", "--unified=0", base, head, "--", file)
    after = git(root, "show", f"{head}:{file}").split("\n")
    found = []
    for match in map(_HEADER.match, told.split("\n")):
        if match is None:
            continue
        base_start, base_count, start, count = (1 if part is None else int(part) for part in match.groups())
        found.append(
            Hunk(
                file=file,
                line=max(start, 1),
                base_start=base_start - (base_count > 0),
                base_count=base_count,
                lines=after[max(start - 1, 0) :][:count],
            )
        )
    return found


def changes_code(root: Path, base: str, hunk: Hunk) -> bool:
    """Whether more than comments, docstrings and layout of a Python file changes."""
    if hunk.is_whole_file or not hunk.file.endswith(".py"):
        return True
    text = git(root, "show", f"{base}:{hunk.file}")
    try:
        return _code(text) != _code(_patched(text, [hunk]))
    except (SyntaxError, ValueError):  # it needs another hunk
        return True


def _code(text: str) -> str:
    parsed = ast.parse(text)
    for node in ast.walk(parsed):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [each for each in body if not _is_text(each)]  # type: ignore[attr-defined]
    return ast.dump(parsed)


def _is_text(node: ast.AST) -> bool:
    """Whether a statement is nothing but a string, as a docstring is."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def apply_hunks(root: Path, base: str, head: str, hunks: Sequence[Hunk], tree: Path) -> None:
    """Make the tree of the head hold the base with some of the hunks.

    Args:
        root: the repository.
        base: the commit that they start from.
        head: the commit that they lead to.
        hunks: those to apply; of files that none of them is in, the base's text stands.
        tree: a worktree.

    Raises:
        InputError: a file cannot be written.
    """
    git(tree, "read-tree", "--reset", "-u", base)
    git(tree, "clean", "-fdxq", "-e", "*.so")
    for file in dict.fromkeys(hunk.file for hunk in hunks):
        own = [hunk for hunk in hunks if hunk.file == file]
        path = tree / file
        try:
            if own[0].is_whole_file:
                _whole(tree, head, file)
            else:
                text = _patched(git(root, "show", f"{base}:{file}"), own)
                path.write_text(text, encoding="utf-8", errors="surrogateescape")
        except OSError as error:
            raise InputError(f"{file}: cannot be written: {error.strerror}") from error


def _whole(tree: Path, head: str, file: str) -> None:
    if git(tree, "ls-tree", head, "--", file):
        git(tree, "checkout", head, "--", file)
    elif (tree / file).is_dir():
        shutil.rmtree(tree / file)
    else:
        (tree / file).unlink(missing_ok=True)


def _patched(text: str, hunks: Collection[Hunk]) -> str:
    r"""A text with hunks in it.

    >>> _patched("a\nb\nc", [Hunk(file="f", line=2, base_start=1, base_count=1, lines=["B", "b2"])])
    'a\nB\nb2\nc\n'
    """
    lines = text.split("\n")
    for hunk in sorted(hunks, key=lambda one: -one.base_start):
        lines[hunk.base_start : hunk.base_start + hunk.base_count] = hunk.lines
    return "\n".join(lines) + "\n"
