"""What the verbs that look things up print with `--json`: runs of the store, and rules."""

from __future__ import annotations

from typing import Annotated

from pyrometer.document import Document
from pyrometer.record import doc
from pyrometer.rules.catalogue import RuleEntry
from pyrometer.store.run import Pruned, RunSummary


class RunsDocument(Document, frozen=True, kw_only=True):
    """`pyrometer runs --json`."""

    runs: Annotated[list[RunSummary], doc("the newest first")]


class PruneDocument(Document, frozen=True, kw_only=True):
    """`pyrometer prune --json`."""

    dry_run: Annotated[bool, doc("true when nothing was removed")]
    pruned: Pruned


class RulesDocument(Document, frozen=True, kw_only=True):
    """`pyrometer rule --json`."""

    rules: Annotated[list[RuleEntry], doc("by code")]
