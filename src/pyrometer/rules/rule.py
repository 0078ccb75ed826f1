"""A rule: its identity, its documentation, its limits and its checks.

One rule is one file, called after it. The module docstring is its documentation, with fixed headings::

    '''Tensor values are read on the host in a hot loop.          <- summary: a sentence that states the fault

    ## What it does
    ## Why it costs
    ## Example            (a python block)
    ## Use instead        (a python block)
    ## Fix safety
    ## References
    '''

    RULE = declare(
        code="PYR101", severity="warning", fix_class="semantic",
        limits=(Limit("min_stall_share", 0.01, "below one percent no step time can tell it"),),
    )

    @RULE.in_source
    def find(module: Module) -> Matches: ...

    @RULE.in_evidence("trace")
    def explain(case: Case) -> Findings:
        yield RULE.finding(message=..., where=..., confidence=..., advice=...)

Its name, that of the file with hyphens, reads as "ignore <name>": it names the pattern, not the cure.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import msgspec

from pyrometer.advice import Advice, FixClass, sentence
from pyrometer.errors import InputError
from pyrometer.evidence.kinds import RecordKind
from pyrometer.rules.finding import Finding, Scope, Severity
from pyrometer.rules.match import Match, in_characters
from pyrometer.source.rewriting import Rewrite

if TYPE_CHECKING:
    from pyrometer.rules.case import Case as Case  # noqa: PLC0414 - rules find here what their checks read
    from pyrometer.source.module import Module as Module  # noqa: PLC0414
else:  # checks name them in annotations only, and `lint` and `rule` wait for no evidence
    Case = Module = Any

Kind = Literal[RecordKind, "source"]
"""What a rule can read: a part of the evidence, or the source text."""

Stage = Literal["preview", "stable", "deprecated"]
"""preview: may change in any release; stable: only its limits may; deprecated: says what succeeds it."""

Findings: TypeAlias = Iterator[Finding]
"""What a check of records yields."""

SourceCheck = Callable[["Module"], Iterable["Match"]]
EvidenceCheck = Callable[["Case"], Iterable[Finding]]

FAMILIES = {
    "0": "measuring",
    "1": "host",
    "2": "memory",
    "3": "data",
    "4": "compilation",
    "5": "kernels",
    "6": "distributed",
    "7": "numerics",
    "8": "production",
}
"""Folder of a rule, by the first digit of its code."""

CODE = re.compile(r"PYR[0-8][0-9]{2}")
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

HEADINGS = ("What it does", "Why it costs", "Example", "Use instead", "Fix safety", "References")


class Limit(NamedTuple):
    """A threshold with its reason; `[tool.pyrometer.rules.limits]` sets it as `"PYR301.min_share" = 0.2`."""

    name: str
    value: float
    reason: str


class Reading(NamedTuple):
    """A check of records, with the kinds of evidence that it cannot do without."""

    needs: tuple[Kind, ...]
    check: EvidenceCheck


@dataclass(frozen=True, kw_only=True, eq=False)
class Rule:
    """One documented check with a stable code.

    `scope`: how much it knows of the cause; of findings about one cost the one that knows more comes first.
    `about_devices`: what its source checks find costs something only where there is an accelerator.
    """

    code: str
    name: str
    doc: str
    severity: Severity
    fix_class: FixClass
    scope: Scope = "mechanism"
    lever: str | None = None
    stage: Stage = "stable"
    since: str = "0.1.0"
    successor: str | None = None
    about_devices: bool = False
    limits: tuple[Limit, ...] = ()
    source_checks: list[SourceCheck] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)

    @property
    def family(self) -> str:
        """The folder of its family, such as `host`."""
        return FAMILIES[self.code[3]]

    @property
    def summary(self) -> str:
        """The first line of the documentation."""
        return self.doc.strip().partition("\n")[0]

    def section(self, heading: str) -> str:
        """The text below one heading of the documentation; empty where there is none."""
        match = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", self.doc, re.DOTALL | re.MULTILINE)
        return match[1].strip() if match else ""

    def limit(self, name: str) -> Limit:
        """One of its limits by name.

        Raises:
            KeyError: it has none of that name.
        """
        return {limit.name: limit for limit in self.limits}[name]

    def matches(self, module: Module) -> Iterator[Match]:
        """What all its checks find in a file."""
        for check in self.source_checks:
            for match in check(module):
                yield in_characters(match, module.lines)

    def in_source(self, check: SourceCheck) -> SourceCheck:
        """Decorate a check of source text."""
        self.source_checks.append(check)
        return check

    def in_evidence(self, *needs: Kind) -> Callable[[EvidenceCheck], EvidenceCheck]:
        """Decorate a check of records; it is only called when all these kinds are there."""

        def keep(check: EvidenceCheck) -> EvidenceCheck:
            self.readings.append(Reading(needs, check))
            return check

        return keep

    def finding(self, *, advice: str | Advice, **fields: Any) -> Finding:
        """A finding of this rule; severity, fix class and lever are the rule's unless given.

        `advice` is what to do in one or two sentences, to which `rewrite` or `sketch`, `gain`, `fix_class` and `lever` are given; or an
        advice that an observer gave, of which they replace what it says. A `Rewrite` also says which lines of the user's it
        replaces. The message is kept without a full stop, since it is also told within sentences.
        """
        own: dict[str, Any] = {
            name: fields.pop(name)
            for name in ("rewrite", "sketch", "gain", "fix_class", "lever")
            if name in fields
        }
        if isinstance(own.get("rewrite"), Rewrite):
            own["replaces"], own["rewrite"] = own["rewrite"]
        if isinstance(advice, str):
            advice = Advice(
                slug=self.name,
                title=sentence(advice),
                **{"fix_class": self.fix_class, "lever": self.lever, **own},
            )
        else:
            advice = msgspec.structs.replace(advice, **own)
        told = {
            "severity": self.severity,
            "scope": self.scope,
            **fields,
            "message": fields["message"].rstrip(" ."),
        }
        return Finding(code=self.code, name=self.name, advice=advice, **told)


declared: dict[str, Rule] = {}
"""Every rule that was declared so far, by code."""


def declare(**fields: Any) -> Rule:
    """Make a rule and register it under its code and its name.

    Unless `name` and `doc` are given, the name is that of the file that calls, with hyphens, and the documentation its docstring.

    Raises:
        InputError: a code or name of another form, or one that another rule has; both are named.
    """
    home = sys._getframe(1).f_globals  # noqa: SLF001 - as `collections.namedtuple` learns whose class it makes
    name = home["__name__"].rpartition(".")[2].replace("_", "-")
    rule = Rule(**{"name": name, "doc": home["__doc__"], **fields})
    if not CODE.fullmatch(rule.code):
        raise InputError(f"rule {rule.code!r} ({rule.name}): legal codes are PYR000 to PYR899")
    if not NAME.fullmatch(rule.name):
        raise InputError(
            f"rule {rule.code} {rule.name!r}: legal names are lower-case words joined by hyphens"
        )
    for other in declared.values():
        if (rule.code == other.code) != (rule.name == other.name) or (
            rule.code == other.code and rule.doc != other.doc
        ):
            raise InputError(
                f"rule {rule.code} {rule.name}: there is {other.code} {other.name} already; give it another code and name"
            )
    declared[rule.code] = rule
    return rule
