"""Advice on a loader: what to change, why here, and what it should bring."""

from __future__ import annotations

from typing import Annotated

from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc


class LoaderAdvice(Record, frozen=True, kw_only=True):
    """One change that could make batches arrive sooner, with the evidence for it."""

    slug: Annotated[str, doc("a stable name, such as add-workers")]
    title: Annotated[str, doc("what to do, in a few words")]
    why: Annotated[str, doc("the evidence in this program, with figures")]
    use: Annotated[str, doc("the code or setting to write")]
    effect: Annotated[str, doc("what changes, and what it costs")]
    saves_s: Annotated[Seconds | None, doc("expected gain per step; null where it is not predicted")] = None
