"""Where a rollout is kept: its state, what was decided, and what processes counted.

The state is replaced as one piece by whoever knows its version, together with the decisions that led to it: of several controllers
one wins, and the others read again. What a process counted is kept as its totals, so that a report that is sent twice counts once.

A ledger is a folder with SQLite, `postgresql://…` (those of the store of runs), or `redis://…`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec
from sqlalchemy import Connection, Table, delete, insert, select, update

from pyrometer.errors import InputError, StoreError
from pyrometer.rollout.observed import Reported
from pyrometer.rollout.state import Decision, State
from pyrometer.store import schema
from pyrometer.store.place import Location
from pyrometer.store.store import Store

REDIS = ("redis://", "rediss://", "unix://")


class Ledger(Protocol):
    """What a controller and the processes that serve need of the place."""

    def names(self) -> list[str]:
        """Of all rollouts, sorted."""

    def read(self, name: str) -> State | None:
        """The state of a rollout; nothing where none of the name was started."""

    def replace(self, name: str, known: int | None, state: State, decisions: Sequence[Decision]) -> bool:
        """Put a state in the place of the one with version `known` (`None`: of none), and log what led to it.

        Returns:
            Whether it was done; nothing changed where another was there by then.
        """

    def decisions(self, name: str) -> list[Decision]:
        """All that was decided, in order, of earlier attempts as well."""

    def report(self, name: str, attempt: int, reports: Sequence[Reported]) -> None:
        """Keep the totals of a process, in the place of those that it reported before."""

    def reports(self, name: str, attempt: int) -> list[Reported]:
        """What all processes counted."""


def open_ledger(location: Location, *, create: bool = True) -> Ledger:
    """The ledger at a place.

    Raises:
        StoreError: it cannot be reached, or there is none.
    """
    if str(location).startswith(REDIS):
        from pyrometer.rollout.redis_ledger import RedisLedger

        return RedisLedger(str(location))
    return StoredLedger(Store.open(location, create=create))


class StoredLedger:
    """In the database of the store of runs, SQLite or PostgreSQL."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def names(self) -> list[str]:
        """From the index."""
        table = schema.rollouts.c
        with self._store.reading() as connection:
            return list(connection.scalars(select(table.name).order_by(table.name)))

    def read(self, name: str) -> State | None:
        """One row."""
        table = schema.rollouts.c
        with self._store.reading() as connection:
            content = connection.scalar(select(table.content).where(table.name == name))
        return None if content is None else read_state(content, name)

    def replace(self, name: str, known: int | None, state: State, decisions: Sequence[Decision]) -> bool:
        """In one transaction: either state and log, or neither."""
        table = schema.rollouts
        row = {"version": state.version, "content": encoded(state)}
        with self._store.writing() as connection:  # as the only writer
            if connection.scalar(select(table.c.version).where(table.c.name == name)) != known:
                return False
            if known is None:
                connection.execute(insert(table), {"name": name, **row})
            else:
                connection.execute(update(table).where(table.c.name == name).values(**row))
            for one in decisions:
                entry = {"name": name, "number": one.number, "content": encoded(one)}
                connection.execute(insert(schema.rollout_decisions), entry)
        return True

    def decisions(self, name: str) -> list[Decision]:
        """By number."""
        table = schema.rollout_decisions.c
        query = select(table.content).where(table.name == name).order_by(table.number)
        with self._store.reading() as connection:
            return [msgspec.json.decode(content, type=Decision) for content in connection.scalars(query)]

    def report(self, name: str, attempt: int, reports: Sequence[Reported]) -> None:
        """A row per epoch, version, process and block."""
        with self._store.writing() as connection:
            for one in reports:
                _put(connection, schema.rollout_counts, {
                    "name": name, "attempt": attempt, "epoch": one.epoch, "arm": one.arm,
                    "reporter": one.reporter, "block": one.block,
                }, encoded(one))  # fmt: skip

    def reports(self, name: str, attempt: int) -> list[Reported]:
        """All rows of an attempt."""
        table = schema.rollout_counts.c
        query = select(table.content).where(table.name == name, table.attempt == attempt)
        with self._store.reading() as connection:
            return [msgspec.json.decode(content, type=Reported) for content in connection.scalars(query)]


def _put(connection: Connection, table: Table, key: dict[str, Any], content: str) -> None:
    connection.execute(delete(table).where(*(table.c[name] == value for name, value in key.items())))
    connection.execute(insert(table), {**key, "content": content})


def encoded(record: State | Decision | Reported) -> str:
    """A record as it is kept."""
    return msgspec.json.encode(record).decode()


def read_state(content: str | bytes, name: str) -> State:
    """A state as it was kept.

    Raises:
        StoreError: it is none that this version can read.
    """
    try:
        return msgspec.json.decode(content, type=State)
    except (msgspec.MsgspecError, InputError) as error:
        raise StoreError(
            f"rollout {name!r}: its state cannot be read ({error}); upgrade Pyrometer, or start it under another name"
        ) from error
