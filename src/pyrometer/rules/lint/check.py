"""One text: what the rules find in it, less what its comments ignore."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pyrometer.rules.lint.judging import judge_ignores
from pyrometer.rules.lint.suppression import Ignore, ignore_for, ignores_in
from pyrometer.rules.match import Match
from pyrometer.rules.rule import Rule
from pyrometer.source.module import DEFAULTS, Module


class Found(NamedTuple):
    """A rule and what it found; columns in characters from 0."""

    rule: Rule
    match: Match


class Checked(NamedTuple):
    """What came of one text.

    Attributes:
        module: the text, parsed.
        found: by place.
        ignored: findings that a comment ignores, with the comment.
        failures: rules that broke off, a line each.
    """

    module: Module
    found: list[Found]
    ignored: list[tuple[Found, Ignore]]
    failures: list[str]


def check_text(
    shown: str, text: str, rules: Sequence[Rule], limits: Mapping[str, float] = DEFAULTS
) -> Checked:
    """Ask every rule about a text, with the thresholds that the user set.

    A rule that breaks off is told in one line, what it found before stays, and the others go on.

    Raises:
        InputError: the text is not Python; the message begins with the place.
    """
    module = Module.parse(shown, text, limits)
    failures: dict[str, str] = {}
    hits: list[Found] = []
    if module.imports_torch:
        hits = [Found(rule, one) for rule in rules for one in _ask(rule, module, failures)]
    ignores = ignores_in(module)
    kept, ignored = _split(hits, ignores)
    ran = [rule for rule in rules if rule.code not in failures]
    judged = judge_ignores(module, ignores, [(hit.rule.code, ignore) for hit, ignore in ignored], ran)
    for rule, match in judged:  # no comment excuses itself
        others = [ignore for ignore in ignores if (ignore.line, ignore.column) != (match.line, match.column)]
        about, excused = _split([Found(rule, match)], others)
        kept += about
        ignored += excused
    return Checked(module, sorted(kept, key=_place), ignored, list(failures.values()))


def _ask(rule: Rule, module: Module, failures: dict[str, str]) -> Iterator[Match]:
    seen: set[tuple[int, int, str]] = set()
    try:
        for match in rule.matches(module):
            key = (match.line, match.column, match.message)
            if key not in seen:
                seen.add(key)
                yield match
    except Exception as error:  # noqa: BLE001 - rules come from anywhere; one that fails must not hide the others
        failures[rule.code] = (
            f"{module.path}: rule {rule.code} {rule.name} broke off: {type(error).__name__}: {_one_line(error)};"
            " the other rules went on, please report it"
        )


def _split(hits: list[Found], ignores: list[Ignore]) -> tuple[list[Found], list[tuple[Found, Ignore]]]:
    kept: list[Found] = []
    ignored: list[tuple[Found, Ignore]] = []
    for hit in hits:
        ignore = ignore_for(ignores, hit.rule.code, hit.match.line)
        if ignore is None:
            kept.append(hit)
        else:
            ignored.append((hit, ignore))
    return kept, ignored


def _place(hit: Found) -> tuple[int, int, str]:
    return hit.match.line, hit.match.column, hit.rule.code


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
