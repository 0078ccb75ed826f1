"""Where a result comes from: the machine in a line, all that is known of it, and what was run."""

from __future__ import annotations

from collections.abc import Sequence

from pyrometer.hardware.record import Environment
from pyrometer.report.chapters.chapter import Block, Chapter, Facts, Machine, Rows, Text
from pyrometer.report.documents import Document
from pyrometer.report.facts import surroundings
from pyrometer.report.facts.layout import Fact


def machine(environment: Environment | None, title: str = "Measured on") -> list[Chapter]:
    """The machine in one line; nothing where it is not known."""
    if environment is None:
        return []
    line = surroundings.environment_line(environment)
    return [Chapter("machine", title, [Machine(line)], place="card", pages="overview quality")]


def provenance(
    document: Document, environment: Environment | None, facts: Sequence[Fact] | None = None
) -> list[Chapter]:
    """Everything known about the machine, and what was run; what was read from files may not tell its machine."""
    provenance_facts = surroundings.provenance_facts(document) if facts is None else facts
    chapters = [
        Chapter(
            "provenance",
            "Provenance",
            [Facts(provenance_facts)],
            "environment",
            label="Origin",
        )
    ]
    if environment is None:
        return chapters
    settings = surroundings.settings_table(environment)
    folded = f"Settings that change speed ({len(settings.rows)})"
    blocks: list[Block] = [
        Facts(surroundings.environment_facts(environment)),
        Rows(settings, "Settings", folded),
    ]
    return [
        Chapter("environment", "Environment", blocks, "environment", label="System"),
        *chapters,
    ]


def notes(said: Sequence[str], pages: str = "overview") -> list[Chapter]:
    """What could not be observed, and why."""
    blocks = [Text(note) for note in said]
    return [Chapter("notes", "What could not be observed", blocks, pages, label="Note")] if said else []
