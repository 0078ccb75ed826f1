"""Items about measuring discipline."""

from __future__ import annotations

from pyrometer.rules.audit.applicable import PROFILERS, TIMERS, needs_words
from pyrometer.rules.audit.item import Item, source_read

MEASURING = (
    Item(
        code="A603",
        title="The program's own timings wait for the device, leave out warm-up, and are repeated",
        rules=("PYR001", "PYR002", "PYR003", "PYR012", "PYR015"),
        family="measuring",
        proof=source_read,
        applies=needs_words(TIMERS, "the program takes no times"),
        needed="the program's source",
    ),
    Item(
        code="A604",
        title="The profiler has a schedule, and is off while times are taken",
        rules=("PYR004", "PYR005", "PYR009", "PYR013"),
        proof=source_read,
        applies=needs_words(PROFILERS, "the program runs no profiler"),
        needed="the program's source",
    ),
)
