"""Which rules run where, and with which thresholds: `[tool.pyrometer.rules]` in `pyproject.toml`, then flags.

::

    [tool.pyrometer.rules]
    select = ["ALL"]                      # the default: every stable rule
    extend-select = ["preview-rule"]
    ignore = ["PYR5"]                     # or a table with reasons: ignore = { PYR5 = "no GPU in this project" }
    exclude = ["legacy", "**/generated_*.py"]
    respect-gitignore = true              # the default: what .gitignore and .ignore files name is left out of folders
    preview = false

    [tool.pyrometer.rules.per-file-ignores]
    "tests/**" = ["PYR1"]

    [tool.pyrometer.rules.limits]
    "PYR301.min_share" = 0.2

Selectors are codes, names, and beginnings of codes. Patterns count from the folder of the file.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from pyrometer.errors import InputError, UsageError
from pyrometer.record import Record, doc
from pyrometer.rules.patterns import path_matches, relative_to
from pyrometer.rules.registry import find_rule, select
from pyrometer.rules.rule import Rule
from pyrometer.settings import find_project, read_table

ALWAYS = "PYR092"
"""A file that cannot be read is told unless it is ignored by name: silence would look like a file without faults."""


class RuleSettings(Record, frozen=True, kw_only=True):
    """What `pyrometer lint` and `pyrometer audit` look for."""

    root: Annotated[str, doc("folder that patterns count from")] = "."
    select: Annotated[list[str], doc("selectors of the rules that run")] = msgspec.field(
        default_factory=lambda: ["ALL"]
    )
    extend_select: Annotated[list[str], doc("selectors of rules that run as well")] = []
    ignore: Annotated[
        dict[str, str], doc("selector of rules that do not run, and the reason; may be empty")
    ] = {}
    per_file_ignores: Annotated[
        dict[str, list[str]], doc("pattern of paths, and selectors to ignore there")
    ] = {}
    exclude: Annotated[list[str], doc("patterns of paths that are not linted")] = []
    respect_gitignore: Annotated[
        bool, doc("whether what .gitignore and .ignore files name is left out of folders")
    ] = True
    limits: Annotated[dict[str, float], doc("thresholds, such as PYR301.min_share")] = {}
    preview: Annotated[bool, doc("whether ALL and beginnings of codes name rules in preview too")] = False

    def chosen(self) -> list[Rule]:
        """The rules that run, by code.

        Raises:
            UsageError: a selector that names no rule.
        """
        wanted = _choose([*self.select, *self.extend_select, ALWAYS], preview=self.preview)
        dropped = {rule.code for rule in select(self.ignore)}
        return [rule for rule in wanted if rule.code not in dropped]

    def ignored_in(self, file: Path) -> frozenset[str]:
        """Codes of the rules that do not run on this file."""
        where = relative_to(file, Path(self.root).absolute())
        hits = [
            one
            for pattern, some in self.per_file_ignores.items()
            if path_matches(where, [pattern])
            for one in some
        ]
        return frozenset(rule.code for rule in select(hits))

    def excludes(self, path: Path) -> bool:
        """Whether a file or folder is not to be linted."""
        return bool(self.exclude) and path_matches(
            relative_to(path, Path(self.root).absolute()), self.exclude
        )


def load_rule_settings(cwd: Path) -> RuleSettings:
    """The settings that hold in a folder, from the nearest `pyproject.toml` there or above.

    Raises:
        InputError: an unreadable file; an unknown key, selector or limit, with the nearest legal name.
    """
    file = find_project(cwd)
    if file is None:
        return RuleSettings(root=str(cwd.resolve()))
    values: dict[str, Any] = {"root": str(file.parent)}
    for key, value in read_table(file, "rules").items():
        source = f"{file}: [tool.pyrometer.rules] {key}"
        if key not in _READERS:
            near = _nearest(key, _READERS, "keys")
            raise InputError(f"{source}: no such setting{near}")
        try:
            values[key.replace("-", "_")] = _READERS[key](value)
        except (InputError, UsageError) as error:
            raise InputError(f"{source}: {error}") from error
    return RuleSettings(**values)


def with_rule_flags(settings: RuleSettings, *, select: Iterable[str], ignore: Iterable[str]) -> RuleSettings:
    """Put flags over settings: selected rules replace those of the file, ignored ones add to them.

    Raises:
        UsageError: a selector that names no rule.
    """
    chosen, dropped = _selectors(list(select)), _selectors(list(ignore))
    if chosen:
        settings = msgspec.structs.replace(settings, select=chosen, extend_select=[])
    return msgspec.structs.replace(settings, ignore={**dict.fromkeys(dropped, ""), **settings.ignore})


def _choose(selectors: Iterable[str], *, preview: bool) -> list[Rule]:
    """Rules by code; those not stable only where they are named in full, or all in preview."""
    chosen: dict[str, Rule] = {}
    for selector in selectors:
        for rule in select([selector]):
            in_full = selector.strip().lower() in (rule.code.lower(), rule.name)
            if in_full or rule.stage == "stable" or (preview and rule.stage == "preview"):
                chosen[rule.code] = rule
    return [chosen[code] for code in sorted(chosen)]


def _selectors(value: Any) -> list[str]:
    texts = _strings(value)
    select(texts)
    return texts


def _ignored(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return dict.fromkeys(_selectors(value), "")
    _selectors(list(value))
    for selector, reason in value.items():
        if not isinstance(reason, str) or not reason.strip():
            raise InputError(
                f'{selector}: got {reason!r}; legal is a reason, such as "no GPU in this project"'
            )
    return dict(value)


def _per_file(value: Any) -> dict[str, list[str]]:
    if not isinstance(value, Mapping):
        raise InputError(f'got {value!r}; legal is a table, such as {{ "tests/**" = ["PYR1"] }}')
    return {pattern: _selectors(some) for pattern, some in value.items()}


def _strings(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
        raise InputError(f'got {value!r}; legal is a list of names, such as ["PYR101"]')
    return [item.strip() for item in value]


def _limits(value: Any) -> dict[str, float]:
    if not isinstance(value, Mapping):
        raise InputError(f'got {value!r}; legal is a table, such as {{ "PYR301.min_share" = 0.2 }}')
    flat: dict[str, Any] = {}
    for key, inner in value.items():  # without quotes, TOML reads PYR301.min_share as a table in a table
        flat.update(
            {f"{key}.{name}": one for name, one in inner.items()}
            if isinstance(inner, Mapping)
            else {key: inner}
        )
    return dict(_limit(key, number) for key, number in flat.items())


def _limit(key: str, number: Any) -> tuple[str, float]:
    which, dot, name = key.partition(".")
    if not dot:
        raise InputError(f"{key}: legal is a rule and its limit, such as PYR301.min_share")
    rule = find_rule(which)
    if name not in [limit.name for limit in rule.limits]:
        near = _nearest(name, [limit.name for limit in rule.limits], "limits")
        raise InputError(f"{key}: {rule.code} {rule.name} has no such limit{near}")
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
        raise InputError(f"{key}: got {number!r}; legal is a number, by default {rule.limit(name).value:g}")
    return f"{rule.code}.{name}", float(number)


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"got {value!r}; legal is true or false")
    return value


def _nearest(name: str, legal: Iterable[str], kind: str) -> str:
    names = list(legal)
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f"; did you mean {near[0]}?"
    return f"; legal are {', '.join(names)}" if names else f"; it has no {kind}"


_READERS: dict[str, Callable[[Any], Any]] = {
    "select": _selectors,
    "extend-select": _selectors,
    "ignore": _ignored,
    "per-file-ignores": _per_file,
    "exclude": _strings,
    "respect-gitignore": _boolean,
    "limits": _limits,
    "preview": _boolean,
}
