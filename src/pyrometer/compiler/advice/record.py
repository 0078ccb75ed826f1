"""What can be changed besides the code, and what came of rewrites that were tried."""

from __future__ import annotations

from typing import Annotated

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.matrix.cell import OutputError
from pyrometer.record import Record, doc


class CompileLever(Record, frozen=True, kw_only=True):
    """One change to how a program is compiled."""

    name: str
    title: Annotated[str, doc("the change in a few words")]
    when: Annotated[str, doc("what makes it worth a try")]
    use: Annotated[str, doc("Python that does it")]
    effect: Annotated[str, doc("what should become of graphs, recompilations or compile time")]
    exactness: Annotated[str, doc("exact, tolerance or semantic: what may change in the results")] = "exact"
    missing: Annotated[str | None, doc("why this torch cannot; null if it can")] = None


class TriedRewrite(Record, frozen=True, kw_only=True):
    """One of the rewrites."""

    file: str
    line: Annotated[int, doc("of the break that it is for")]
    title: str
    before: str
    after: str


class RewriteTrial(Record, frozen=True, kw_only=True):
    """All rewrites together, carried out in memory; files are never touched."""

    rewrites: list[TriedRewrite]
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
