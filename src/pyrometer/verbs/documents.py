"""From what was observed to the document of a verb, with what its page draws; in a store where that is wanted."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias, TypeVar

import msgspec

from pyrometer.evidence.observed import Observed
from pyrometer.record import to_dict
from pyrometer.redaction import redacted
from pyrometer.report.attaching import draw, with_sources
from pyrometer.report.attachments import Attachments, files_of
from pyrometer.report.documents import EvidenceDocument
from pyrometer.report.kinds import kind_of
from pyrometer.rules.explain import explain
from pyrometer.rules.settings import RuleSettings
from pyrometer.settings import load_settings
from pyrometer.store.place import Location
from pyrometer.store.saving import save_result

D = TypeVar("D", bound=EvidenceDocument)

StoreChoice: TypeAlias = str | Path | bool
"""Folder of the store to keep a result in, or `postgresql://…`; `True` is that of the settings, `.pyrometer`, and `False` none."""


def location_of(store: StoreChoice) -> Location | None:
    """The store that is meant.

    Raises:
        InputError: settings that cannot be used.

    >>> location_of(False), location_of("runs")
    (None, 'runs')
    """
    if isinstance(store, bool):
        return load_settings(os.environ, Path.cwd()).store if store else None
    return store


def told(
    kind: type[D],
    seen: Observed,
    *,
    sources: Iterable[Path] = (),
    rules: RuleSettings | None = None,
    with_audit: bool = False,
) -> D:
    """Explain what was observed: the document of a verb, which knows what its page draws.

    Args:
        kind: of the document.
        seen: what was observed.
        sources: files that the program begins with.
        rules: which to ask, with which limits; by default all stable ones.
        with_audit: answer the checklist as well.
    """
    diagnosis = explain(seen.evidence, sources, rules, with_audit=with_audit)
    document = kind(evidence=seen.evidence, diagnosis=diagnosis)
    drawn = Attachments() if seen.trace is None else draw(seen.trace.ranks, seen.peaks)
    document.draw_with(with_sources(drawn, document))
    return document


def stored(document: D, store: Location | None) -> D:
    """The document as the run of a store, whose id it knows; where there is no store, as it is.

    Raises:
        StoreError: the store cannot be written.
    """
    if store is None or document.environment is None:
        return document
    attachments = document.attachments or Attachments()
    run, _, notes = save_result(
        store,
        to_dict(document),
        kind=kind_of(document),
        target=document.target,
        environment=document.environment,
        command=[],
        artifacts=files_of(redacted(attachments)),
    )
    for note in notes:
        warnings.warn(note, stacklevel=3)
    known = msgspec.structs.replace(document, run_id=run.id, created=run.created_at)
    known.draw_with(attachments)
    return known
