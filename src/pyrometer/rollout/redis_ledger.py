"""A ledger in Redis: a script replaces a state and appends to its log as one piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from pyrometer.errors import StoreError
from pyrometer.quantity import Seconds
from pyrometer.redaction import redacted
from pyrometer.rollout.ledger import encoded, read_state
from pyrometer.rollout.observed import Reported
from pyrometer.rollout.state import Decision, State

PREFIX = "pyrometer:rollout:"
TIMEOUT_S: Seconds = 5.0

# Replaces the state where its version is the known one, or where none is known and there is none.
_REPLACE = """
local there = redis.call('HGET', KEYS[1], 'version')
if (there or '') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'content', ARGV[3])
for i = 4, #ARGV do redis.call('RPUSH', KEYS[2], ARGV[i]) end
return 1
"""


class RedisLedger:
    """Keys below `pyrometer:rollout:`.

    Args:
        url: such as redis://localhost/0; it has to keep its data on a disk, or a restart forgets the rollout.

    Raises:
        StoreError: redis-py is not installed, or the address is none.
    """

    def __init__(self, url: str) -> None:
        try:
            import redis
        except ImportError as error:
            raise StoreError("rollout: redis is not installed; pip install 'pyrometer[redis]'") from error
        self._name = str(redacted(url))
        self._error: type[Exception] = redis.RedisError
        try:
            self._client: Any = redis.Redis.from_url(
                url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S, decode_responses=True
            )
        except ValueError as error:
            raise StoreError(
                f"rollout: got the address {self._name!r}; legal is redis://host:port/0"
            ) from error

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._error as error:
            raise StoreError(
                f"{self._name}: {error}: is the server running, and may this user write?"
            ) from error

    def names(self) -> list[str]:
        """By a scan."""
        with self._errors():
            found = self._client.scan_iter(match=f"{PREFIX}state:*")
            return sorted(key.removeprefix(f"{PREFIX}state:") for key in found)

    def read(self, name: str) -> State | None:
        """One field."""
        with self._errors():
            content = self._client.hget(f"{PREFIX}state:{name}", "content")
        return None if content is None else read_state(content, name)

    def replace(self, name: str, known: int | None, state: State, decisions: Sequence[Decision]) -> bool:
        """By a script, which nothing interrupts."""
        keys = (f"{PREFIX}state:{name}", f"{PREFIX}log:{name}")
        given = ("" if known is None else str(known), str(state.version), encoded(state))
        with self._errors():
            return bool(self._client.eval(_REPLACE, len(keys), *keys, *given, *map(encoded, decisions)))

    def decisions(self, name: str) -> list[Decision]:
        """The list."""
        with self._errors():
            found = self._client.lrange(f"{PREFIX}log:{name}", 0, -1)
        return [msgspec.json.decode(content, type=Decision) for content in found]

    def report(self, name: str, attempt: int, reports: Sequence[Reported]) -> None:
        """A field per epoch, version, process and block."""
        fields = {f"{one.epoch}|{one.arm}|{one.reporter}|{one.block}": encoded(one) for one in reports}
        if fields:
            with self._errors():
                self._client.hset(f"{PREFIX}counts:{name}:{attempt}", mapping=fields)

    def reports(self, name: str, attempt: int) -> list[Reported]:
        """All fields of an attempt."""
        with self._errors():
            found = self._client.hvals(f"{PREFIX}counts:{name}:{attempt}")
        return [msgspec.json.decode(content, type=Reported) for content in found]
