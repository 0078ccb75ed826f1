"""Redis Streams: one entry per tick, of bounded length; `read_ticks` reads what many processes send."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyrometer.errors import InputError
from pyrometer.monitor.tick import Tick
from pyrometer.record import from_json, to_json
from pyrometer.redaction import redacted

TIMEOUT_S = 2.0


def connect(url: str) -> Any:
    """A client of Redis.

    Raises:
        InputError: the package is missing, or the URL is none.
    """
    try:
        import redis
    except ModuleNotFoundError as error:
        raise InputError(
            "redis: the package redis is not installed; install it by pip install 'pyrometer[redis]'"
        ) from error
    try:
        return redis.Redis.from_url(url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S)
    except ValueError as error:
        raise InputError(f"redis: {redacted(url)}: {error}; write redis://HOST:PORT/DATABASE") from error


class RedisStream:
    """The sink that sends them."""

    def __init__(self, url: str, *, stream: str, length: int) -> None:
        self._client = connect(url)
        self._stream = stream
        self._length = length

    def write(self, ticks: Sequence[Tick], /) -> None:
        """Send them in one round trip."""
        pipe = self._client.pipeline(transaction=False)
        for tick in ticks:
            pipe.xadd(self._stream, {"tick": to_json(tick)}, maxlen=self._length, approximate=True)
        pipe.execute()

    def close(self) -> None:
        """Disconnect."""
        self._client.close()


def read_ticks(client: Any, stream: str, after: str, *, wait_ms: int | None) -> tuple[list[Tick], str]:
    """Ticks that came after an entry, and the last entry read; `0` reads from the beginning, `$` only what comes.

    Raises:
        InputError: Redis cannot be reached.
    """
    import redis

    try:
        answer = client.xread({stream: after}, count=1000, block=wait_ms)
    except redis.RedisError as error:
        raise InputError(f"redis: {error}; start it, or name another") from error
    entries = answer[0][1] if answer else []
    if isinstance(answer, dict) and answer:
        entries = next(iter(answer.values()))[0]
    ticks = []
    for _, fields in entries:
        try:
            ticks.append(from_json(Tick, fields[b"tick"]))
        except (KeyError, InputError):
            continue  # of a version to come
    return ticks, entries[-1][0].decode() if entries else after
