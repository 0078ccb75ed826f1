"""Items about several ranks."""

from __future__ import annotations

from pyrometer.rules.audit.applicable import needs_ranks
from pyrometer.rules.audit.item import Item, proof_of
from pyrometer.rules.case import Case
from pyrometer.rules.finding import Value


def _wrappers(case: Case) -> dict[str, Value] | None:
    wrappers = case.program.wrappers if case.program is not None else []
    return {"wrappers": [wrapper.type_name for wrapper in wrappers]} if wrappers else None


_RANKS = proof_of("job", ranks=lambda job: len(job.ranks))

DISTRIBUTED = (
    Item(
        code="A701",
        title="Communication hides behind computing",
        rules=("PYR601", "PYR610"),
        family="distributed",
        proof=_RANKS,
        applies=needs_ranks,
        needed="traces of all ranks",
    ),
    Item(
        code="A702",
        title="Gradients are exchanged in buckets of the right size, without copies",
        rules=("PYR602", "PYR604", "PYR605", "PYR606", "PYR612"),
        proof=_wrappers,
        applies=needs_ranks,
        needed="the wrapper's settings",
    ),
    Item(
        code="A703",
        title="Accumulated micro-batches exchange gradients once",
        rules=("PYR603", "PYR611"),
        proof=_wrappers,
        applies=needs_ranks,
        needed="the wrapper's settings",
    ),
    Item(
        code="A704",
        title="Ranks are balanced",
        rules=("PYR607", "PYR608", "PYR609"),
        proof=_RANKS,
        applies=needs_ranks,
        needed="traces of all ranks",
    ),
)
