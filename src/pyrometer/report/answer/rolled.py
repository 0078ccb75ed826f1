"""Short answer of a rollout."""

from __future__ import annotations

from pyrometer.report.answer.short import Fix, Part, ShortAnswer, Whole
from pyrometer.report.facts import rollout as of_rollout
from pyrometer.report.history_documents import RolloutDocument


def of_document(document: RolloutDocument) -> ShortAnswer:
    """Where it stands and why, every test, and the last decisions."""
    parts = [
        Part(
            test.metric, of_rollout.ratio(test.estimate), note=f"{of_rollout.interval(test)}, {test.outcome}"
        )
        for test in document.tests
    ]
    fixes = [
        Fix(
            f"{of_rollout.clock(one.at_s)} {one.action}, share {of_rollout.percent(one.share)}",
            sentence=one.reason,
        )
        for one in document.decisions[-5:]
    ]
    return ShortAnswer(
        document.name,
        of_rollout.headline(document),
        bound=of_rollout.reason(document),
        alerts=[guard.said for guard in document.guards],
        fixes=fixes,
        fixes_title="Decisions",
        nothing="nothing was decided yet",
        whole=Whole("Tests", "new over old", parts) if parts else None,
        trust=f"{document.num_new:,} observations of the new version in this stage, {document.num_old:,} of the old",
    )
