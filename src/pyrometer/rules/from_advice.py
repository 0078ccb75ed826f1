"""Advice that observers gave, as findings of rules: what to change is said once, by whom observed it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from pyrometer.advice import Advice
from pyrometer.place import Place
from pyrometer.rules.finding import Finding
from pyrometer.rules.rule import Rule


class Given(NamedTuple):
    """One advice of a record."""

    advice: Advice
    link: str
    """Where the run holds it, as a JSON pointer."""

    @property
    def place(self) -> Place:
        """The line that it concerns the most; without one, nowhere."""
        return self.advice.where or Place()


class Advising(Protocol):
    """A record with advice."""

    @property
    def advice(self) -> Sequence[Advice]:
        """In the order of the record."""


def given_advice(record: Advising | None, link: str, *slugs: str) -> list[Given]:
    """The advice of a record that has one of these slugs; none without a record.

    Args:
        record: what was observed.
        link: where the run holds the record, as a JSON pointer.
        slugs: of the advice.
    """
    advice = record.advice if record is not None else ()
    return [
        Given(item, f"{link}/advice/{number}") for number, item in enumerate(advice) if item.slug in slugs
    ]


def advice_finding(rule: Rule, given: Given, **fields: Any) -> Finding:
    """An advice as a rule's finding; of `fields` confidence and cost are the rule's to say, the others replace what it says."""
    own: dict[str, Any] = {"message": given.advice.why, "where": given.place, "links": [given.link]}
    return rule.finding(advice=given.advice, **{**own, **fields})
