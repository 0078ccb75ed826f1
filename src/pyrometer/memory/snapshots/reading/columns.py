"""Turn dictionaries of a snapshot into columns batch by batch, so that they need not all be alive at once.

Call stacks are shared between events in the file and stay so: the first time one is met it gets a number, and its list is
emptied down to that number, where every later event that refers to the same list finds it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from typing import Any

import numpy as np

from pyrometer.memory.snapshots.snapshot import ACTIONS, OOM, OTHER_ACTION, Events, Frame

_CODES = {name: code for code, name in enumerate(ACTIONS)} | {"free": ACTIONS.index("free_completed")}
_NO_TEXT = "?"
_MAX_LINE = 1 << 31
MAX_BYTES = 1 << 50
"""No device holds more; what claims to is damaged."""
MAX_ADDRESS = 1 << 62
MAX_DEVICES = 128
"""torch counts no further."""


class _Number(int):
    """Stands in a list of frames for the stack that they were; no file can hold one."""


class Interned:
    """Values, each numbered once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._number: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        """Its number; a new one if it was not met before."""
        number = self._number.get(value)
        if number is None:
            number = self._number[value] = len(self.values)
            self.values.append(value)
        return number


class StackTable:
    """Every call stack once."""

    def __init__(self) -> None:
        self._frames = Interned()
        self._stacks: dict[tuple[int, ...], _Number] = {(): _Number(0)}
        self._frame_by_identity: dict[int, int] = {}
        self._alive: list[Any] = []

    @property
    def frames(self) -> list[Frame]:
        """All frames."""
        return self._frames.values

    @property
    def stacks(self) -> list[tuple[int, ...]]:
        """All stacks, as numbers of frames."""
        return list(self._stacks)

    def number(self, frames: Any) -> int:
        """The number of a list of frames; the list is emptied for it."""
        if type(frames) is not list or not frames:
            return 0
        if type(frames[0]) is _Number:
            return frames[0]
        try:
            stack = tuple(map(self._frame_by_identity.__getitem__, map(id, frames)))
        except KeyError:
            stack = tuple([self._frame(frame) for frame in frames])
        number = self._stacks.get(stack)
        if number is None:
            number = self._stacks[stack] = _Number(len(self._stacks))
        frames[:] = (number,)
        return number

    def _frame(self, frame: Any) -> int:
        number = self._frame_by_identity.get(id(frame))
        if number is None:
            number = self._frames.number(_frame(frame))
            self._frame_by_identity[id(frame)] = number
            self._alive.append(frame)  # its id must not be used again
        return number


def _frame(raw: Any) -> Frame:
    if not isinstance(raw, dict):
        return Frame(_NO_TEXT, _NO_TEXT, 0)
    line = raw.get("line")
    number = line if isinstance(line, int) and 0 <= line <= _MAX_LINE else 0
    return Frame(clean_text(raw.get("name")), clean_text(raw.get("filename")), number)


def clean_text(raw: Any) -> str:
    r"""Text of a file without what could confuse a terminal or an encoder.

    >>> clean_text("a\x1b[2Jb\ud800"), clean_text(5)
    ('a?[2Jb?', '?')
    """
    if not isinstance(raw, str):
        return _NO_TEXT
    return raw if raw.isprintable() else "".join(c if c.isprintable() else "?" for c in raw)


class Collector(ABC):
    """Stands in for a list while a pickle is loaded: takes the items that would be appended."""

    __slots__ = ()

    @abstractmethod
    def extend(self, batch: list[Any]) -> None:
        """Take the next items."""

    def append(self, item: Any) -> None:
        """Take one."""
        self.extend([item])


class ItemCollector(Collector):
    """Keeps the items."""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[Any] = []

    def extend(self, batch: list[Any]) -> None:
        """Take the next items."""
        self.items += batch


class EventCollector(Collector):
    """The columns of one device's events; the dictionaries are emptied once they were read."""

    __slots__ = (
        "_action",
        "_address",
        "_category",
        "_labels",
        "_pool",
        "_pools",
        "_size",
        "_stack",
        "_stacks",
        "_stream",
        "_time",
        "skipped",
    )

    def __init__(self, stacks: StackTable, pools: Interned, labels: Interned) -> None:
        self._stacks, self._pools, self._labels = stacks, pools, labels
        self._action = array("B")
        self._address, self._size, self._stream, self._time = (array("q") for _ in range(4))
        self._stack, self._pool, self._category = (array("i") for _ in range(3))
        self.skipped = 0

    def extend(self, batch: list[Any]) -> None:
        """Take the next events."""
        events = [event for event in batch if type(event) is dict and "action" in event]
        if len(set(map(id, events))) < len(events):  # by reference one may be there a million times
            events = list({id(event): event for event in events}.values())
        self.skipped += len(batch) - len(events)
        number, pool, label = self._stacks.number, self._pools.number, self._labels.number
        self._action.extend([_CODES.get(event["action"], OTHER_ACTION) for event in events])
        self._address.extend([_address(event) for event in events])
        self._size.extend([event.get("size", 0) for event in events])
        self._stream.extend([event.get("stream", 0) for event in events])
        self._time.extend([event.get("time_us", -1) for event in events])
        self._stack.extend([number(event.get("frames")) for event in events])
        self._pool.extend([pool(event["pool_id"]) if "pool_id" in event else 0 for event in events])
        self._category.extend([label(event["category"]) if "category" in event else -1 for event in events])
        for event in events:
            event.clear()

    def finished(self) -> Events:
        """The columns.

        Raises:
            ValueError: sizes or addresses that no device has.
        """
        size, address = (np.frombuffer(column, np.int64) for column in (self._size, self._address))
        action = np.frombuffer(self._action, np.uint8)
        # What failed may have asked for any size, by mistake.
        odd = np.flatnonzero((size < 0) | ((size > MAX_BYTES) & (action != OOM)))
        if len(odd):
            code = int(action[odd[0]])
            what = ACTIONS[code] if code < len(ACTIONS) else "of unknown kind"
            raise ValueError(
                f"event {int(odd[0])} ({what}) has {int(size[odd[0]])} bytes, which no device has"
            )
        if len(address) and not (address.min() >= 0 and address.max() <= MAX_ADDRESS):
            raise ValueError("an address that no device has")
        return Events(
            action=action,
            address=address,
            size=size,
            stream=np.frombuffer(self._stream, np.int64),
            time_us=np.frombuffer(self._time, np.int64),
            stack=np.frombuffer(self._stack, np.int32),
            pool=np.frombuffer(self._pool, np.int32),
            category=np.frombuffer(self._category, np.int32),
        )


def _address(event: dict[str, Any]) -> int:
    address: int = event["addr"] if "addr" in event else event.get("device_free", 0)
    return address
