"""What limits the trust in a measurement, and what to type next. (Filled below.)"""

from __future__ import annotations

from typing import Annotated

from pyrometer.record import Record, doc


class Caveat(Record, frozen=True, kw_only=True):
    """One reservation about a measurement."""

    code: Annotated[str, doc("stable, snake_case")]
    message: Annotated[str, doc("what was seen, with its figure")]
    hint: Annotated[str, doc("what to do next")]
