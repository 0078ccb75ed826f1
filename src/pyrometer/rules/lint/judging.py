"""Comments that ignore rules, judged themselves: those that ignore nothing, and those that do not say why."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence

from pyrometer.rules.lint.suppression import NOQA, Ignore
from pyrometer.rules.match import Fix, Match
from pyrometer.rules.measuring.ignore_without_reason import RULE as WITHOUT_REASON
from pyrometer.rules.measuring.unused_ignore import RULE as UNUSED
from pyrometer.rules.registry import rules
from pyrometer.rules.rule import Rule
from pyrometer.source.edit import Edit
from pyrometer.source.module import Module


def judge_ignores(
    module: Module, ignores: Sequence[Ignore], used: Iterable[tuple[str, Ignore]], ran: Sequence[Rule]
) -> Iterator[tuple[Rule, Match]]:
    """Findings about the comments of a file.

    Args:
        module: the file.
        ignores: its comments.
        used: code of each finding that was ignored, and the comment that did.
        ran: the rules that looked at the file; what names others is not judged.
    """
    uses = set(used_by_line(used))
    for ignore in ignores:
        unused = [name for name in ignore.selectors if _is_unused(name, ignore, uses, ran)]
        if UNUSED in ran and (unused or not ignore.selectors):
            yield UNUSED, _unused(module, ignore, unused)
        elif WITHOUT_REASON in ran and not ignore.reason and not ignore.noqa:
            yield WITHOUT_REASON, _without_reason(ignore)


def used_by_line(used: Iterable[tuple[str, Ignore]]) -> Iterator[tuple[str, int, int]]:
    """Code, and place of the comment, of each use."""
    return ((code, ignore.line, ignore.column) for code, ignore in used)


def _is_unused(name: str, ignore: Ignore, uses: set[tuple[str, int, int]], ran: Sequence[Rule]) -> bool:
    codes = ignore.selectors[name]
    if not codes:
        return True
    readers = {rule.code for rule in rules() if rule.code in codes and rule.source_checks}
    if not readers or not readers <= {rule.code for rule in ran}:
        return False
    return not any((code, ignore.line, ignore.column) in uses for code in codes)


def _unused(module: Module, ignore: Ignore, unused: list[str]) -> Match:
    if not ignore.selectors:
        message, fix = "names no rule and ignores nothing; write ignore[CODE] and the reason", None
    else:
        message = "; ".join(_why(name, ignore) for name in unused)
        fix = Fix(fix_class="exact", title="Take it out", edits=[_without(module, ignore, unused)])
    return _match(ignore, message, "Take it out, so that it hides no fault to come.", fix)


def _why(name: str, ignore: Ignore) -> str:
    if ignore.selectors[name]:
        return f"{name} finds nothing here to ignore"
    near = difflib.get_close_matches(name.lower(), [rule.name for rule in rules()], 1)
    return f"{name} is no rule" + (f"; did you mean {near[0]}?" if near else "")


def _without_reason(ignore: Ignore) -> Match:
    names = ", ".join(ignore.selectors)
    return _match(
        ignore, f"ignores {names} and does not say why", "Write the reason behind the brackets.", None
    )


def _match(ignore: Ignore, message: str, advice: str, fix: Fix | None) -> Match:
    return Match(
        line=ignore.line,
        column=ignore.column,
        end_line=ignore.line,
        end_column=ignore.end_column,
        message=message,
        advice=advice,
        fix=fix,
    )


def _without(module: Module, ignore: Ignore, unused: list[str]) -> Edit:
    """Take some selectors out of the brackets, or the comment out of the line, or the line out of the file."""
    line = module.lines[ignore.line - 1]
    kept = [name for name in ignore.noqa or ignore.selectors if name not in unused]
    if kept and (noqa := NOQA.match(line, ignore.column)):
        return _edit(ignore.line, *noqa.span("codes"), ", ".join(kept))
    if kept:
        start = line.index("[", ignore.column) + 1
        return _edit(ignore.line, start, line.index("]", start), ", ".join(kept))
    before, after = line[: ignore.column], line[ignore.end_column :]
    if not before.strip() and not after.strip() and ignore.line < len(module.lines):
        return Edit(line=ignore.line, column=0, end_line=ignore.line + 1, end_column=0, text="")
    if not before.strip():
        return _edit(ignore.line, ignore.column if after.strip() else 0, len(line) - len(after.lstrip()), "")
    return _edit(ignore.line, len(before.rstrip()), ignore.end_column, "")


def _edit(line: int, column: int, end_column: int, text: str) -> Edit:
    return Edit(line=line, column=column, end_line=line, end_column=end_column, text=text)
