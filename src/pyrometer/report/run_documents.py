"""What the verbs that look into the store print with `--json`."""

from __future__ import annotations

from typing import Annotated

from pyrometer.record import doc
from pyrometer.report.documents import Document
from pyrometer.store.comparison import Comparison
from pyrometer.store.run import Pruned, RunSummary


class RunsDocument(Document, frozen=True, kw_only=True):
    """`pyrometer runs --json`."""

    runs: Annotated[list[RunSummary], doc("the newest first")]


class CompareDocument(Document, frozen=True, kw_only=True):
    """`pyrometer compare A B --json`."""

    comparison: Comparison


class PruneDocument(Document, frozen=True, kw_only=True):
    """`pyrometer prune --json`."""

    dry_run: Annotated[bool, doc("true when nothing was removed")]
    pruned: Pruned
