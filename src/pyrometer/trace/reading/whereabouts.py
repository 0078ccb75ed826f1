"""Where in the file the events of the present chunk lie, for telling what was wrong with them."""

from __future__ import annotations

from collections.abc import Sequence

from pyrometer.trace.reading.chunks import Batch
from pyrometer.trace.reading.decoding import AnyEvent
from pyrometer.trace.reading.repair_log import RepairLog


class Whereabouts:
    """Counts damage that shows only when events are turned into columns.

    Args:
        repair_log: where it is counted.
    """

    def __init__(self, repair_log: RepairLog) -> None:
        self.repair_log = repair_log
        self.text = b""
        self.offset = 0

    def enter(self, batch: Batch) -> None:
        """Turn to another chunk."""
        self.text, self.offset = batch.text, batch.offset

    def note(self, code: str, events: Sequence[AnyEvent], *, lost: bool = False) -> None:
        """Count events of the present chunk, and find where the first of them lies."""
        if not events:
            return
        args = bytes(events[0].args)
        within = self.text.find(args) if args != b"{}" else -1
        self.repair_log.note(
            code,
            num=0 if lost else len(events),
            lost=len(events) if lost else 0,
            byte=self.offset + max(0, within),
        )
