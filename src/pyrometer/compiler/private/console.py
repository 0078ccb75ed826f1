"""What torch prints about graph breaks, kept from the console while a report says the same in full."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

_LOGGERS = ("torch", "torch._dynamo")
_BREAK = "Graph break"


class _NoBreaks(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith(_BREAK)


@contextlib.contextmanager
def without_break_warnings() -> Iterator[None]:
    """Keep torch's handlers from printing graph breaks; they are as before at the end."""
    mute = _NoBreaks()
    handlers = [handler for name in _LOGGERS for handler in logging.getLogger(name).handlers]
    for handler in handlers:
        handler.addFilter(mute)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(mute)
