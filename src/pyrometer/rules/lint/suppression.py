"""Comments that ignore rules, with the reason.

::

    x = y.item()  # pyrometer: ignore[PYR101, item-in-hot-loop] once per epoch
    # pyrometer: ignore-file[PYR2] a script that runs for a second
    y = z.tolist()  # noqa: PYR101
    # ruff: noqa: PYR2

An ignore counts for its own line, and, on the first or last line of a statement, for all its lines; of a statement with
a body, for its head. Alone on a line it counts for the statement below. `ignore-file` counts for the file, wherever it is.
`noqa` counts in the same way, for those of its codes that are ours; without codes it is another linter's business.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pyrometer.errors import UsageError
from pyrometer.rules.registry import select
from pyrometer.rules.rule import Module
from pyrometer.source.lines import MARK

_MENTION = re.compile(r"#\s*pyrometer:|\bnoqa\s*:[^\n#]*PYR", re.IGNORECASE)
MARKER = re.compile(
    r"#\s*pyrometer:\s*(?P<verb>ignore(?:-file)?)\b(?:\[(?P<selectors>[^\]]*)\])?(?P<reason>.*?)\s*(?=\s#\s|$)"
)
_CODE = r"[A-Z]+[0-9]+"
_OURS = re.compile(r"\bPYR[0-9]+\b", re.IGNORECASE)
NOQA = re.compile(
    rf"#\s*(?P<file>(?:pyrometer|ruff|flake8)\s*:\s*)?noqa\s*:\s*(?P<codes>{_CODE}(?:[\s,]+{_CODE})*)"
    r"(?P<reason>.*?)\s*(?=\s#\s|$)",
    re.IGNORECASE,
)


class Ignore(NamedTuple):
    """One comment that ignores rules.

    Attributes:
        line: of the comment.
        column: of its `#`, in characters from 0.
        end_column: behind its last character.
        lines: that it counts for; the whole file where `whole_file`.
        selectors: as written, each with the codes it names; unknown ones name none.
        reason: empty where none is given.
        alone: whether nothing else stands on its line.
        noqa: every code of a comment that is written as other linters have it, theirs too; empty for our own form.
    """

    line: int
    column: int
    end_column: int
    lines: range
    selectors: dict[str, frozenset[str]]
    reason: str
    whole_file: bool
    alone: bool
    noqa: tuple[str, ...] = ()

    def covers(self, code: str, line: int) -> bool:
        """Whether it ignores a rule at a line."""
        return (self.whole_file or line in self.lines) and any(
            code in codes for codes in self.selectors.values()
        )


def ignores_in(module: Module) -> list[Ignore]:
    """The comments of a file that ignore rules, in the order of the text."""
    lowered = module.text.lower()  # which takes a tenth of the search
    if ("pyrometer" not in lowered and "noqa" not in lowered) or not _MENTION.search(module.text):
        return []  # reading the tokens takes longer than parsing
    statements = _statements(module)
    return [
        _ignore(
            match,
            (line, column),
            alone=not module.lines[line - 1][:column].strip(),
            statements=statements,
        )
        for line, column, comment in _comments(module.text)
        for pattern in (MARKER, NOQA)
        for match in pattern.finditer(comment)
        if pattern is MARKER or _OURS.search(match["codes"])
    ]


def ignore_for(ignores: Iterable[Ignore], code: str, line: int) -> Ignore | None:
    """The comment that ignores a rule at a line; one at the place itself rather than one for the file."""
    hits = [ignore for ignore in ignores if ignore.covers(code, line)]
    return min(hits, key=lambda ignore: ignore.whole_file, default=None)


def codes_of(selector: str) -> frozenset[str]:
    """The codes that a selector names; none where there is no such rule."""
    try:
        return frozenset(rule.code for rule in select([selector]))
    except UsageError:
        return frozenset()


def _ignore(
    match: re.Match[str], place: tuple[int, int], *, alone: bool, statements: dict[int, range]
) -> Ignore:
    line, column = place
    noqa = tuple(re.split(r"[\s,]+", match["codes"].upper())) if match.re is NOQA else ()
    ours = [code for code in noqa if _OURS.fullmatch(code)]
    names = ours or [name.strip() for name in (match["selectors"] or "").split(",")]
    below = min((first for first in statements if first > line), default=line) if alone else line
    return Ignore(
        line=line,
        column=column + match.start(),
        end_column=column + match.end(),
        lines=statements.get(below, range(line, line + 1)),
        selectors={name: codes_of(name) for name in names if name},
        reason=match["reason"].strip(),
        whole_file=bool(match["file"]) if noqa else match["verb"] == "ignore-file",
        alone=alone,
        noqa=noqa,
    )


def _comments(text: str) -> Iterator[tuple[int, int, str]]:
    """Line, column and text of each comment."""
    reader = io.StringIO(text.removeprefix(MARK), newline="").readline
    try:
        for token in tokenize.generate_tokens(reader):
            if token.type == tokenize.COMMENT:
                yield *token.start, token.string
    except (tokenize.TokenError, SyntaxError):
        return  # the parser accepts a few endings that the tokenizer does not; comments before them count


def _statements(module: Module) -> dict[int, range]:
    """The lines of the statement that begins, or else ends, on a line; of one with a body, only its head.

    Where several begin on one line, the longest counts.
    """
    firsts: dict[int, range] = {}
    lasts: dict[int, range] = {}
    for node in module.nodes(ast.stmt):
        lines = _lines_of(node, module)
        for line in {lines.start, node.lineno}:
            if lines.stop > firsts.get(line, range(0)).stop:
                firsts[line] = lines
        lasts[lines.stop - 1] = lines
    return lasts | firsts


def _lines_of(node: ast.stmt, module: Module) -> range:
    first, _, last, _ = module.span(node)
    body: Sequence[ast.AST] = getattr(node, "cases", None) or getattr(node, "body", None) or ()
    if not body:
        return range(first, last + 1)
    inner = body[0]
    below = inner.pattern.lineno if isinstance(inner, ast.match_case) else _first_line(inner)
    return range(first, max(first + 1, below))


def _first_line(statement: Any) -> int:
    decorators = getattr(statement, "decorator_list", None)
    return (decorators[0] if decorators else statement).lineno  # type: ignore[no-any-return]
