"""Write comments that ignore what is found now, each with a reason."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping, Sequence

from pyrometer.errors import InputError
from pyrometer.rules.lint.check import Found, check_text
from pyrometer.rules.lint.document import read_document
from pyrometer.rules.lint.files import SourceFile
from pyrometer.rules.lint.fixing import Fixed, FixedFile
from pyrometer.rules.lint.suppression import Ignore, ignores_in
from pyrometer.rules.measuring.ignore_without_reason import RULE as WITHOUT_REASON
from pyrometer.rules.measuring.unused_ignore import RULE as UNUSED
from pyrometer.rules.rule import Rule
from pyrometer.source.edit import Edit, apply_edits
from pyrometer.source.module import DEFAULTS, Module

_ABOUT_COMMENTS = (UNUSED, WITHOUT_REASON)


def excuse_file(
    file: SourceFile,
    data: bytes,
    rules: Sequence[Rule],
    reason: str,
    limits: Mapping[str, float] = DEFAULTS,
) -> FixedFile:
    """A file with comments that ignore all its findings; nothing is written.

    A comment stands behind its line, or alone above the statement where a line ends within a string or in a backslash.
    Findings about comments are left: no comment should excuse them.

    Raises:
        InputError: the file is not Python, the reason cannot stand in a comment, or comments do not silence a finding.
    """
    if not reason.strip() or len(reason.splitlines()) > 1 or " # " in f" {reason} ":
        raise InputError(
            f"--add-ignores: got {reason!r}; legal is one line that says why, without another comment in it"
        )
    document = read_document(file.shown, data)
    before = text = document.text
    wanted = [
        hit for hit in check_text(file.shown, text, rules, limits).found if hit.rule not in _ABOUT_COMMENTS
    ]
    if not wanted:
        return FixedFile(file, before, Fixed(before, [], []), None)
    text = _with_comments(file.shown, text, wanted, reason.strip())
    left = [
        hit for hit in check_text(file.shown, text, rules, limits).found if hit.rule not in _ABOUT_COMMENTS
    ]
    if left or ast.dump(ast.parse(text)) != ast.dump(ast.parse(before)):
        first = (left or wanted)[0]
        raise InputError(
            f"{file.shown}: no comment can ignore {first.rule.code} in line {first.match.line}; use ignore-file"
        )
    applied = [hit.rule.code for hit in wanted]
    return FixedFile(file, before, Fixed(text, applied, []), document.encode(text))


def _with_comments(shown: str, text: str, wanted: Sequence[Found], reason: str) -> str:
    module = Module.parse(shown, text)
    codes: dict[int, list[str]] = defaultdict(list)
    for hit in wanted:
        codes[hit.match.line].append(hit.rule.code)
    ignores = {
        ignore.line: ignore
        for ignore in ignores_in(module)
        if ignore.selectors and not ignore.whole_file and not ignore.noqa
    }
    edits = [
        _comment(module, line, list(dict.fromkeys(some)), reason, ignores) for line, some in codes.items()
    ]
    return apply_edits(text, edits)


def _comment(module: Module, line: int, codes: list[str], reason: str, ignores: dict[int, Ignore]) -> Edit:
    ignore = ignores.get(line)
    if ignore is not None and not ignore.alone:
        end = module.lines[line - 1].index("]", ignore.column)
        return _insertion(line, end, "".join(f", {code}" for code in codes))
    comment = f"# pyrometer: ignore[{', '.join(codes)}] {reason}"
    if _can_end_in_comment(module, line):
        return _insertion(line, len(module.lines[line - 1].rstrip()), f"  {comment}")
    first = _first_line(module, line)
    source = module.lines[first - 1]
    indent = source[: len(source) - len(source.lstrip())]
    return _insertion(first, 0, f"{indent}{comment}\n")


def _can_end_in_comment(module: Module, line: int) -> bool:
    """Whether the end of a line is neither within a string nor joined to the next by a backslash."""
    if module.lines[line - 1].endswith("\\"):
        return False
    strings = module.nodes(ast.Constant, ast.JoinedStr)
    return not any(node.lineno <= line < (node.end_lineno or node.lineno) for node in strings)


def _first_line(module: Module, line: int) -> int:
    """The first line of the innermost statement on a line."""
    around = [module.span(node)[:3:2] for node in module.nodes(ast.stmt)]
    return max((first for first, last in around if first <= line <= last), default=line)


def _insertion(line: int, column: int, text: str) -> Edit:
    return Edit(line=line, column=column, end_line=line, end_column=column, text=text)
