"""Transitions for other processes, by a Redis stream: bounded, and an outage costs events, never the program."""

from __future__ import annotations

from pyrometer.monitor.export.redis_stream import connect
from pyrometer.monitor.tick import Event, Source
from pyrometer.record import from_json, to_json

STREAM = "pyrometer:degradation"
MOST_EVENTS = 1000


class RedisEvents:
    """Appends events to a stream that followers read.

    Args:
        url: such as redis://localhost/0.
        source: whose events they are.
        stream: its name.

    Raises:
        InputError: redis-py is not installed, or the address is none.
    """

    def __init__(self, url: str, source: Source, stream: str = STREAM) -> None:
        self._client, self._source, self._stream = connect(url), source, stream
        self.num_failed = 0
        self.last_error = ""

    def publish(self, event: Event) -> None:
        """Append an event; a failure is counted."""
        content = {"source": to_json(self._source), "event": to_json(event)}
        try:
            self._client.xadd(self._stream, content, maxlen=MOST_EVENTS, approximate=True)
        except Exception as error:  # noqa: BLE001 - of the network, and of the library's own kinds
            self.num_failed += 1
            self.last_error = f"{type(error).__name__}: {error}"

    def read(self, after: str = "0") -> list[tuple[str, Source, Event]]:
        """What processes published after an entry, each with the id of its entry."""
        begin = "-" if after == "0" else f"({after}"
        return [
            (name.decode(), from_json(Source, content[b"source"]), from_json(Event, content[b"event"]))
            for name, content in self._client.xrange(self._stream, min=begin, count=MOST_EVENTS)
        ]

    def close(self) -> None:
        """Disconnect."""
        self._client.close()
