"""The settings by which requests become batches."""

from __future__ import annotations

import math
from typing import Annotated

from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc
from pyrometer.settings import require

PRIORITIES = (1, 2, 3)
"""The lower, the more urgent, as in Triton; 0 of a request means the one in the middle."""
USUAL = 2


class BatchPolicy(Record, frozen=True, kw_only=True):
    """When a batch is closed, and how much may wait.

    A batch is closed when it is full, when its oldest request has waited `wait_s`, when the earliest deadline minus the expected
    service time is reached, or, with `flush_idle`, as soon as the model is free.

    Raises:
        InputError: a value outside its legal range.

    >>> BatchPolicy(most_rows=0)
    Traceback (most recent call last):
    pyrometer.errors.InputError: most_rows: got 0; legal is at least 1, such as 32
    """

    most_rows: Annotated[int, doc("rows of a batch; a request may hold several")] = 32
    wait_s: Annotated[Seconds, doc("the longest that a request waits for others while the model is free")] = (
        0.010
    )
    flush_idle: Annotated[bool, doc("a free model takes what waits, without waiting for more")] = True
    most_waiting: Annotated[int, doc("rows that may wait; beyond, requests are refused")] = 1024
    starvation_s: Annotated[Seconds, doc("what has waited so long goes before any priority and deadline")] = (
        1.0
    )

    def __post_init__(self) -> None:
        """Refuse what no queue could keep."""
        require(self.most_rows >= 1, "most_rows", self.most_rows, "at least 1, such as 32")
        require(0 <= self.wait_s < math.inf, "wait_s", self.wait_s, "0 or more, such as 0.01 for 10 ms")
        require(
            self.most_waiting >= self.most_rows,
            "most_waiting",
            self.most_waiting,
            f"at least the {self.most_rows} rows of a batch, such as 1024",
        )
        require(self.starvation_s > 0, "starvation_s", self.starvation_s, "above 0, such as 1")
