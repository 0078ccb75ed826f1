"""Transitions for other processes, by a Redis stream: bounded, and an outage costs events, never the program."""

from __future__ import annotations

from typing import Any

import msgspec

from pyrometer.monitor.export.redis_stream import connect
from pyrometer.monitor.tick import Event, Source

STREAM = "pyrometer:degradation"
MOST_EVENTS = 1000


class RedisEvents:
    """Appends events to a stream that followers read.

    Args:
        url: such as redis://localhost/0.
        source: whose events they are.
        stream: its name.
        client: of redis-py; by default one for the address.

    Raises:
        InputError: redis-py is not installed, or the address is none.
    """

    def __init__(self, url: str, source: Source, stream: str = STREAM, client: Any = None) -> None:
        client = connect(url) if client is None else client
        self._client, self._source, self._stream = client, source, stream
        self.num_failed = 0
        self.last_error = ""

    def publish(self, event: Event) -> None:
        """Append an event; a failure is counted."""
        content = {"source": msgspec.json.encode(self._source), "event": msgspec.json.encode(event)}
        try:
            self._client.xadd(self._stream, content, maxlen=MOST_EVENTS, approximate=True)
        except Exception as error:  # noqa: BLE001 - of the network, and of the library's own kinds
            self.num_failed += 1
            self.last_error = f"{type(error).__name__}: {error}"

    def read(self, after: str = "0") -> list[tuple[str, Source, Event]]:
        """What processes published after an entry, each with the id of its entry."""
        entries = self._client.xrange(
            self._stream, min=f"({after}" if after != "0" else "-", count=MOST_EVENTS
        )
        found = []
        for entry, content in entries:
            name = entry.decode() if isinstance(entry, bytes) else entry
            plain = {key.decode() if isinstance(key, bytes) else key: value for key, value in content.items()}
            found.append(
                (
                    name,
                    msgspec.json.decode(plain["source"], type=Source),
                    msgspec.json.decode(plain["event"], type=Event),
                )
            )
        return found
