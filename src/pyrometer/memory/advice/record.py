"""Advice: what to change, why here, and what it should bring."""

from __future__ import annotations

from typing import Annotated

from pyrometer.quantity import Bytes
from pyrometer.record import Record, doc


class Advice(Record, frozen=True, kw_only=True):
    """One change that could lower the memory, with the evidence for it."""

    slug: Annotated[str, doc("a stable name, such as expandable-segments")]
    title: Annotated[str, doc("what to do, in a few words")]
    why: Annotated[str, doc("the evidence in this program, with figures")]
    file: Annotated[str | None, doc("of the line that it concerns the most; null where it concerns none")] = (
        None
    )
    line: int | None = None
    use: Annotated[str, doc("the code or setting to write")]
    effect: Annotated[str, doc("what changes, and what it costs")]
    saves_bytes: Annotated[Bytes | None, doc("expected drop of the peak; null where it is not predicted")] = (
        None
    )
    proved: Annotated[
        str | None, doc("how the figure was obtained: predicted, measured; null without a figure")
    ] = None
