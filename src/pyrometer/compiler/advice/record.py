"""What came of rewrites that were tried."""

from __future__ import annotations

from typing import Annotated

from pyrometer.advice import Advice
from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.matrix.cell import OutputError
from pyrometer.record import Record, doc


class RewriteTrial(Record, frozen=True, kw_only=True):
    """All rewrites together, carried out in memory; files are never touched."""

    rewrites: Annotated[list[Advice], doc("each with the line of its break")]
    breaks_before: Annotated[int, doc("root breaks of the program as it is written")]
    breaks_after: Annotated[int | None, doc("with the rewrites; null where it failed")] = None
    error: Annotated[
        OutputError | None,
        doc("outputs of the rewritten program against eager ones of the original; null if unknown"),
    ] = None
    verdict: Annotated[Verdict | None, doc("rewritten and compiled against compiled as written, in turn")] = (
        None
    )
    failure: Annotated[str | None, doc("why there is nothing to tell")] = None
    skipped: Annotated[list[str], doc("rewrites that could not be carried out, and why")] = []
