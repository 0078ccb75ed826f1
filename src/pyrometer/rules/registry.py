"""All rules: found in the folders of their families and, of other packages, by entry point `pyrometer.rules`.

A package adds rules by naming a module that declares them::

    [project.entry-points."pyrometer.rules"]
    mine = "my_package.my_rules"
"""

from __future__ import annotations

import difflib
import pkgutil
import re
from collections.abc import Callable, Collection, Iterable
from functools import cache
from importlib import import_module
from pathlib import Path

from pyrometer.errors import InputError, UsageError
from pyrometer.rules.rule import CODE, FAMILIES, NAME, Rule, declared

_NEEDS = re.compile(r"^@RULE\.in_evidence\((.*?)\)", re.MULTILINE | re.DOTALL)


@cache
def rules() -> tuple[Rule, ...]:
    """Every rule, by code."""
    for family in FAMILIES.values():
        _import_family(family)
    _load_others()
    return tuple(declared[code] for code in sorted(declared))


def rules_for(kinds: Collection[str]) -> tuple[Rule, ...]:
    """The rules that records of these kinds can answer, by code; those of ours that cannot are not imported.

    Which kinds a rule needs is read from its text, which is ten times faster than importing it.
    """
    for family in FAMILIES.values():
        _import_family(family, lambda path: _can_answer(path, kinds))
    _load_others()
    able = (
        rule for rule in declared.values() if any(set(one.needs).issubset(kinds) for one in rule.readings)
    )
    return tuple(sorted(able, key=lambda rule: rule.code))


def needs_in_text(text: str) -> list[frozenset[str]]:
    """The kinds of evidence that each check of records in the text of a rule cannot do without.

    >>> [sorted(kinds) for kinds in needs_in_text('@RULE.in_evidence("trace", "source")')]
    [['source', 'trace']]
    """
    return [frozenset(re.findall(r'"(\w+)"', needs)) for needs in _NEEDS.findall(text)]


def find_rule(which: str) -> Rule:
    """The rule with this code or name, upper or lower case.

    Raises:
        UsageError: there is none; the nearest are named.
    """
    key = which.lower()
    _import_home(key)
    found = _by_key(declared.values()).get(key) or _by_key(rules()).get(key)
    if found is None:
        near = difflib.get_close_matches(key, _by_key(rules()), n=3)
        text = f"; did you mean {', '.join(_shown(one) for one in near)}?" if near else ""
        raise UsageError(f"{which}: no such rule{text}; `pyrometer rule` lists all")
    return found


def select(which: Iterable[str], *, among: Iterable[Rule] | None = None) -> list[Rule]:
    """The rules that selectors name: a code, a name, or the start of codes such as `PYR1`; `ALL` names all.

    Raises:
        UsageError: a selector that names no rule.
    """
    pool = list(rules() if among is None else among)
    chosen: dict[str, Rule] = {}
    for selector in which:
        text = selector.strip()
        hits = [rule for rule in pool if _names(text, rule)]
        if not hits:
            hits = [find_rule(text)]
        chosen.update({rule.code: rule for rule in hits if rule in pool})
    return [chosen[code] for code in sorted(chosen)]


def _names(selector: str, rule: Rule) -> bool:
    upper = selector.upper()
    return (
        upper == "ALL"
        or rule.name == selector.lower()
        or (upper.startswith("PYR") and rule.code.startswith(upper))
    )


def _shown(key: str) -> str:
    return key.upper() if CODE.fullmatch(key.upper()) else key


def _by_key(pool: Iterable[Rule]) -> dict[str, Rule]:
    return {key: rule for rule in pool for key in (rule.code.lower(), rule.name)}


def _import_home(key: str) -> None:
    """Import what holds a rule of ours with this code or name, whose file is called after it: all rules take a while."""
    if CODE.fullmatch(key.upper()):
        _import_family(FAMILIES[key[3]])
    elif NAME.fullmatch(key):
        for family in FAMILIES.values():
            _import_family(family, lambda path: path.stem == key.replace("-", "_"))


def _can_answer(path: Path, kinds: Collection[str]) -> bool:
    """Whether a rule in this file has a check for which these kinds are enough; also where only the compiled file is there."""
    try:
        needs = needs_in_text(path.read_text(encoding="utf-8"))
    except OSError:
        return True
    return any(one.issubset(kinds) for one in needs)


def _import_family(family: str, wanted: Callable[[Path], bool] = lambda _: True) -> None:
    """Import the rules of a folder, or of those files that are wanted."""
    try:
        package = import_module(f"pyrometer.rules.{family}")
    except ModuleNotFoundError as error:
        if error.name != f"pyrometer.rules.{family}":
            raise
        return
    for module in pkgutil.iter_modules(package.__path__):
        if not module.ispkg and wanted(Path(package.__path__[0], f"{module.name}.py")):
            import_module(f"{package.__name__}.{module.name}")


@cache
def _load_others() -> None:
    """Import the rules of other packages."""
    from importlib.metadata import entry_points

    for point in entry_points(group="pyrometer.rules"):
        try:
            point.load()
        except Exception as error:
            raise InputError(
                f"rules of {point.name} ({point.value}) cannot be loaded: {error}; fix or uninstall it"
            ) from error
