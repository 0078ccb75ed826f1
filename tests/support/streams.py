"""Server-sent events, as a browser takes them apart."""

from __future__ import annotations

import json
import time


def messages(answer):
    """Events with their data, as a browser takes them apart."""
    event = None
    for line in answer.iter_lines():
        if line.startswith("event: "):
            event = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield event, json.loads(line.removeprefix("data: "))


def until(stream, event, condition, limit_s=30):
    """The first message of a kind that meets a condition."""
    end = time.monotonic() + limit_s
    for name, data in stream:
        if name == event and condition(data):
            return data
        assert time.monotonic() < end, f"no such {event}"
    raise AssertionError("the stream has ended")
