"""Two stored runs as one document, with the attachments of both."""

from __future__ import annotations

import msgspec

from pyrometer.report.attaching import stored_attachments
from pyrometer.report.attachments import Attachments
from pyrometer.report.facts.comparison import side_names, target
from pyrometer.report.history_documents import CompareDocument
from pyrometer.store.comparison import compare_runs
from pyrometer.store.run import Run
from pyrometer.store.store import Store
from pyrometer.tuning.recipe.comparing import compare_tunings


def compare_stored(store: Store, a: Run, b: Run) -> tuple[CompareDocument, Attachments]:
    """Put two runs side by side; their call trees are laid over each other where both were traced.

    Raises:
        InputError: one of them holds no measurement, or its attachments are damaged.
        IncomparableError: they were taken on machines, or with settings, that must not be compared.
    """
    comparison = compare_runs(a, b)
    recipes = compare_tunings(a.document, b.document) if a.kind == b.kind == "tune" else None
    document = CompareDocument(target=target(comparison), comparison=comparison, recipes=recipes)
    kept = [(run, stored_attachments(store, run)) for run in (a, b)]
    views = [
        msgspec.structs.replace(attachments.traces[0], path=name)
        for name, (_, attachments) in zip(side_names(comparison), kept, strict=True)
        if attachments.traces
    ]
    return document, Attachments(traces=views if len(views) == 2 else [], history=kept[1][1].history)
