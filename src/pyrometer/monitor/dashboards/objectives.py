"""What a service promises, from which its alerts follow."""

from __future__ import annotations

from typing import Annotated

from pyrometer.errors import InputError
from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc


class Objectives(Record, frozen=True, kw_only=True):
    """Limits of the rules.

    Raises:
        InputError: a value outside its legal range.
    """

    availability: Annotated[float, doc("share of calls that must not fail")] = 0.999
    latency_s: Annotated[Seconds | None, doc("what 99 of 100 calls must keep below; null for no alert")] = (
        None
    )
    hold: Annotated[str, doc("how long a condition must last, as Prometheus writes it")] = "1m"
    webhook: Annotated[str, doc("where Alertmanager posts")] = "http://127.0.0.1:9099/alerts"

    def __post_init__(self) -> None:
        """Refuse what no rule could say."""
        if not 0 < self.availability < 1:
            raise InputError(f"availability: got {self.availability}; legal is above 0% and below 100%")
        if self.latency_s is not None and self.latency_s <= 0:
            raise InputError(f"latency: got {self.latency_s}; legal is above 0 s, such as 50ms")
