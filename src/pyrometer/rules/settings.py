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
import glob
import math
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from pyrometer.errors import InputError, UsageError
from pyrometer.record import Record, doc
from pyrometer.rules.patterns import path_matches, relative_to
from pyrometer.rules.registry import find_rule, rules_for
from pyrometer.rules.registry import select as select_rules
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
        dropped = {rule.code for rule in select_rules(self.ignore)}
        return [rule for rule in wanted if rule.code not in dropped]

    def chosen_for(self, kinds: Collection[str]) -> list[Rule]:
        """Those of the chosen rules that records of these kinds can answer; where none is left out, no other is imported."""
        if self.select == ["ALL"] and not self.ignore and not self.extend_select:
            stages = ("stable", "preview") if self.preview else ("stable",)
            return [rule for rule in rules_for(kinds) if rule.stage in stages]
        able = set(rules_for(kinds))
        return [rule for rule in self.chosen() if rule in able]

    def reason_of(self, rule: Rule) -> str:
        """Why a rule does not run."""
        reasons = (why for text, why in self.ignore.items() if rule in select_rules([text]))
        return next(reasons, None) or "left out by the settings"

    def ignored_in(self, file: Path) -> frozenset[str]:
        """Codes of the rules that do not run on this file."""
        where = relative_to(file, Path(self.root).absolute())
        hits = [
            one
            for pattern, some in self.per_file_ignores.items()
            if path_matches(where, [pattern])
            for one in some
        ]
        return frozenset(rule.code for rule in select_rules(hits))

    def excludes(self, path: Path) -> bool:
        """Whether a file or folder is not to be linted."""
        return bool(self.exclude) and path_matches(
            relative_to(path, Path(self.root).absolute()), self.exclude
        )


def load_rule_settings(
    cwd: str | Path = ".", *, config: Iterable[str] = (), isolated: bool = False
) -> RuleSettings:
    """The settings that hold in a folder, from the nearest `pyproject.toml` there or above.

    Args:
        cwd: the folder.
        config: a file to read instead, whose patterns count from `cwd`; and single settings as TOML writes them, such as
            `preview = true`, which win over any file.
        isolated: read no file.

    Raises:
        InputError: an unreadable file; an unknown key, selector or limit, with the nearest legal name.
        UsageError: more than one file, or a file although none is to be read.
    """
    folder = Path(cwd)
    named = [text for text in config if "=" not in text or Path(text).is_file()]
    if len(named) > 1 or (named and isolated):
        clash = "--isolated reads no file of settings" if isolated else "one file of settings can be read"
        raise UsageError(f"--config: got {', '.join(named)}; {clash}; pass single settings as KEY=VALUE")
    file = Path(named[0]) if named else None if isolated else find_project(folder)
    root = folder.resolve() if named or file is None else file.parent
    values: dict[str, Any] = {"root": str(root)}
    if file is not None:
        table = read_table(file, "rules")
        if named and not table:
            raise InputError(
                f"--config: {file} has no table [tool.pyrometer.rules]; write one, or name another file"
            )
        values |= _read(table, f"{file}: [tool.pyrometer.rules]")
    for text in config:
        if text not in named:
            values |= _read(_assignment(text), "--config")
    return RuleSettings(**values)


def _assignment(text: str) -> dict[str, Any]:
    """One setting as TOML writes it; a word without quotes is a text."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            f"--config: got {text!r}, {error}; legal is a file or a setting such as exclude=['legacy']"
        ) from error


def _read(table: Mapping[str, Any], source: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _READERS:
            raise InputError(f"{source} {key}: no such setting{_nearest(key, _READERS, 'keys')}")
        try:
            values[key.replace("-", "_")] = _READERS[key](value)
        except (InputError, UsageError) as error:
            raise InputError(f"{source} {key}: {error}") from error
    return values


def with_rule_flags(
    settings: RuleSettings,
    *,
    select: Iterable[str] = (),
    extend_select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    exclude: Iterable[str] = (),
) -> RuleSettings:
    """Put flags over settings: selected rules replace those of the file; all else adds to what stands there.

    A rule that flags select by its code or name runs although the file ignores it. Patterns count from this folder.

    Raises:
        UsageError: a selector that names no rule.
    """
    chosen, more, dropped = (
        _selectors(list(select)),
        _selectors(list(extend_select)),
        _selectors(list(ignore)),
    )
    named = {
        rule.code for text in (*chosen, *more) for rule in select_rules([text]) if _is_in_full(text, rule)
    }
    return msgspec.structs.replace(
        settings,
        select=chosen or settings.select,
        extend_select=more if chosen else [*settings.extend_select, *more],
        ignore={**dict.fromkeys(dropped, ""), **_ignored_but(settings.ignore, named)},
        exclude=[*settings.exclude, *(_from_root(pattern, settings.root) for pattern in exclude)],
    )


def _ignored_but(ignore: Mapping[str, str], named: set[str]) -> dict[str, str]:
    """What is ignored, less some rules; a selector that names one of them becomes the codes of the others."""
    kept: dict[str, str] = {}
    for selector, reason in ignore.items():
        codes = [rule.code for rule in select_rules([selector])]
        rest = [selector] if named.isdisjoint(codes) else [code for code in codes if code not in named]
        kept.update(dict.fromkeys(rest, reason))
    return kept


def _from_root(pattern: str, root: str) -> str:
    """A pattern that counts from this folder, as one that counts from the root of the settings."""
    text = pattern.replace("\\", "/").removeprefix("./")
    if "/" not in text.rstrip("/"):
        return text  # a name at any depth
    whole = text if text.startswith("/") else f"{glob.escape(Path.cwd().as_posix())}/{text}"
    return whole.removeprefix(f"{glob.escape(Path(root).absolute().as_posix())}/")


def _choose(selectors: Iterable[str], *, preview: bool) -> list[Rule]:
    """Rules by code; those not stable only where they are named in full, or all in preview."""
    chosen: dict[str, Rule] = {}
    for selector in selectors:
        for rule in select_rules([selector]):
            if _is_in_full(selector, rule) or rule.stage == "stable" or (preview and rule.stage == "preview"):
                chosen[rule.code] = rule
    return [chosen[code] for code in sorted(chosen)]


def _is_in_full(selector: str, rule: Rule) -> bool:
    return selector.strip().lower() in (rule.code.lower(), rule.name)


def _selectors(value: Any) -> list[str]:
    texts = _strings(value)
    select_rules(texts)
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
