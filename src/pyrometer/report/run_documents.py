"""What the verbs of the store print with `--json`."""

from __future__ import annotations

from typing import Annotated

from pyrometer.document import Document
from pyrometer.record import doc
from pyrometer.store.run import Pruned, RunSummary


class RunsDocument(Document, frozen=True, kw_only=True):
    """`pyrometer runs --json`."""

    runs: Annotated[list[RunSummary], doc("the newest first")]


class PruneDocument(Document, frozen=True, kw_only=True):
    """`pyrometer prune --json`."""

    dry_run: Annotated[bool, doc("true when nothing was removed")]
    pruned: Pruned
