"""Bytes over time, category by category."""

from __future__ import annotations

from typing import Annotated

from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import Record, doc


class PhaseSpan(Record, frozen=True, kw_only=True):
    """A stretch of the timeline with a name."""

    name: Annotated[str, doc("data, h2d, forward, backward, optimizer")]
    first: Annotated[int, doc("index of its first point")]
    last: Annotated[int, doc("index of its last point")]


class Timeline(Record, frozen=True, kw_only=True):
    """Live bytes after allocations and frees, thinned so that every peak is kept.

    All columns are equally long.
    """

    event: Annotated[list[int], doc("number of the allocation or free after which the point was taken")] = []
    time_s: Annotated[list[Seconds], doc("since the first point; empty where there is no clock")] = []
    total_bytes: Annotated[list[Bytes], doc("all live bytes")] = []
    category_bytes: Annotated[dict[str, list[Bytes]], doc("of each category")] = {}
    reserved_bytes: Annotated[
        list[Bytes], doc("what the allocator holds; empty without a caching allocator")
    ] = []
    phases: Annotated[list[PhaseSpan], doc("what ran when")] = []
