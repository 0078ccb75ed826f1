"""What the verbs of a rollout share: its document, how it is printed, and who gives an order."""

from __future__ import annotations

import getpass
import platform
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pyrometer.cli.pages import write_page
from pyrometer.cli.printing import print_result
from pyrometer.cli.saving import provenance
from pyrometer.redaction import redacted

if TYPE_CHECKING:
    from pyrometer.report.history_documents import RolloutDocument
    from pyrometer.rollout.ledger import Ledger


def whoami() -> str:
    """User and host, for the log."""
    return f"{getpass.getuser()}@{platform.node()}"


def rollout_document(ledger: Ledger, name: str) -> RolloutDocument:
    """Where a rollout stands, judged by all that was counted until now."""
    from pyrometer.report.history_documents import RolloutDocument
    from pyrometer.rollout.controller import judge_now, require

    state = require(ledger, name)
    judged, _ = judge_now(ledger, state)
    return RolloutDocument(
        name=name,
        old=state.plan.old,
        new=state.plan.new,
        state=state.status,
        stage=state.stage + 1,
        stages=state.plan.stages,
        share=state.share,
        attempt=state.attempt,
        elapsed_s=state.elapsed_s,
        outcome=judged.outcome,
        reason=judged.reason,
        num_new=judged.num_new,
        num_old=judged.num_old,
        tests=judged.tests,
        guards=judged.guards,
        decisions=[one for one in ledger.decisions(name) if one.attempt == state.attempt],
        course=state.course,
        levers=[other for other in ledger.names() if other.startswith(f"{name}/")],
    )


def print_rollout(
    ledger: Ledger, name: str, *, as_json: bool, full: bool = False, page: Path | None = None
) -> RolloutDocument:
    """Print where a rollout stands, and write its page where one was asked for."""
    document = msgspec.structs.replace(redacted(rollout_document(ledger, name)), **provenance(None))
    written = write_page(document, page, store_location=None)
    print_result(document, as_json=as_json, full=full, page=page if written else None)
    return document
