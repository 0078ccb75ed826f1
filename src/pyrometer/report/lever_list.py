"""All levers, as `pyrometer tune --list` prints them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pyrometer.advice import FixClass
from pyrometer.document import Document
from pyrometer.record import Record, doc


class LeverEntry(Record, frozen=True, kw_only=True):
    """What is known of a lever before it is tried."""

    name: str
    title: str
    why: str
    stage: str
    fix_class: FixClass
    kinds: list[str]
    missing: Annotated[str | None, doc("what has to be installed first; null where nothing is")] = None


class LeversDocument(Document, frozen=True, kw_only=True):
    """`pyrometer tune --list --json`."""

    levers: list[LeverEntry]

    @classmethod
    def of_registry(cls) -> LeversDocument:
        """All levers that are registered, in the order in which they are applied."""
        from pyrometer.tuning.levers.lever import missing_packages
        from pyrometer.tuning.levers.registry import levers

        return cls(
            levers=[
                LeverEntry(
                    name=name,
                    title=lever.title,
                    why=lever.why,
                    stage=lever.stage,
                    fix_class=lever.fix_class,
                    kinds=sorted(lever.kinds),
                    missing=missing_packages(lever),
                )
                for name, lever in levers().items()
            ]
        )


def lever_lines(document: LeversDocument) -> Iterator[str]:
    """A line for each: name, class, and what it does, or what it lacks."""
    width = max(len(entry.name) for entry in document.levers)
    for entry in document.levers:
        lacks = f" ({entry.missing})" if entry.missing else ""
        yield f"{entry.name:<{width}}  {entry.fix_class:<9}  {entry.title}{lacks}"
