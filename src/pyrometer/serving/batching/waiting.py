"""A request that waits for its batch, and the batch that it ends in."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, Literal, NamedTuple

from pyrometer.quantity import Seconds
from pyrometer.serving.batching.policy import USUAL

Reason = Literal["full", "idle", "waited", "deadline", "starved", "drain"]
"""Why a batch was closed."""


class Waiting:
    """One request in the queue.

    Attributes:
        bucket: what may share a batch: the bucket of shapes, and the version where one is asked for.
        rows: of the batch that it takes.
        arrived_s: on the clock of whoever asks the queue.
        deadline_s: when its answer is worth nothing any more.
        priority: 1 is the most urgent.
        payload: of the owner; the queue does not look at it.
    """

    __slots__ = ("arrived_s", "bucket", "deadline_s", "is_waiting", "number", "payload", "priority", "rows")

    def __init__(
        self,
        bucket: Hashable,
        rows: int,
        arrived_s: Seconds,
        *,
        deadline_s: Seconds = math.inf,
        priority: int = USUAL,
        payload: Any = None,
    ) -> None:
        self.bucket = bucket
        self.rows = rows
        self.arrived_s = arrived_s
        self.deadline_s = deadline_s
        self.priority = priority
        self.payload = payload
        self.number = 0
        self.is_waiting = False


class Batch(NamedTuple):
    """Requests that go through the model together."""

    bucket: Hashable
    requests: list[Waiting]
    rows: int
    reason: Reason


class Refusal(NamedTuple):
    """Why a request may not wait.

    Attributes:
        kind: `full`: try again later; `too_large`: it fits into no batch.
        retry_after_s: when there may be room.
    """

    kind: Literal["full", "too_large"]
    retry_after_s: Seconds
