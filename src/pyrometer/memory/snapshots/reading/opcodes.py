"""Which pickle opcodes a snapshot may consist of: those that make plain data, and none that name or call anything."""

from __future__ import annotations

import pickletools

import numpy as np
import numpy.typing as npt

STOP, MARK, PROTO, FRAME = ord("."), ord("("), 0x80, 0x95
EMPTY_LIST, EMPTY_DICT = ord("]"), ord("}")
APPENDS, SETITEMS, APPEND, SETITEM = ord("e"), ord("u"), ord("a"), ord("s")
BINPUT, LONG_BINPUT, MEMOIZE = ord("q"), ord("r"), 0x94
LONG1 = 0x8A
MAX_INT_BYTES = 9
"""Every address, size and time fits; longer ones serve only to make hashing and arithmetic slow."""

FIXED = {
    **dict.fromkeys(b".(])}easuN\x88\x89\x85\x86\x87\x94", 1),
    **dict.fromkeys(b"KhqX\x8c\x8d\x8aCB\x80", 2),
    **dict.fromkeys(b"M", 3),
    **dict.fromkeys(b"Jjr", 5),
    **dict.fromkeys(b"G\x95", 9),
}
"""Bytes per instruction, with the argument; of those with a length prefix, to be replaced by what the prefix says."""

PREFIXED = {ord("X"): 4, 0x8C: 1, 0x8D: 8, LONG1: 1, ord("C"): 1, ord("B"): 4}
"""Bytes of the length prefix."""

STRINGS = {ord("X"): 5, 0x8C: 2, 0x8D: 9}
"""Text, and where it begins after the opcode."""

SCALARS = b"KMJ\x8aGN\x88\x89X\x8c"
TUPLES = {0x85: 1, 0x86: 2, 0x87: 3}
PUTS = (BINPUT, LONG_BINPUT, MEMOIZE)

_NAMED = {ord(opcode.code): opcode.name for opcode in pickletools.opcodes}
_RUNS_CODE = {
    "GLOBAL", "STACK_GLOBAL", "INST", "OBJ", "REDUCE", "BUILD", "NEWOBJ", "NEWOBJ_EX",
    "EXT1", "EXT2", "EXT4", "PERSID", "BINPERSID",
}  # fmt: skip
_OLD = {"INT", "LONG", "FLOAT", "STRING", "UNICODE", "GET", "PUT", "LIST", "DICT"}


def table(values: dict[int, int]) -> npt.NDArray[np.int32]:
    """Look-up by byte; 0 where there is none."""
    made = np.zeros(256, np.int32)
    for code, value in values.items():
        made[code] = value
    return made


def refusal(code: int, position: int) -> str:
    """Why an opcode is not read.

    >>> refusal(ord("R"), 12)
    'it would call a function or make an object (REDUCE at byte 12); snapshots are plain data, nothing was executed'
    """
    known = _NAMED.get(code)
    name = known or f"0x{code:02x}"
    if name in _RUNS_CODE:
        what = "would call a function or make an object"
        return f"it {what} ({name} at byte {position}); snapshots are plain data, nothing was executed"
    if name in _OLD:
        return (
            f"it is in pickle protocol 0 or 1 ({name} at byte {position}); dump it with protocol 2 or later"
        )
    if known is None:
        return f"byte {position} ({name}) is no pickle instruction: the file is damaged, or no pickle at all"
    return f"no snapshot contains the instruction {name} (at byte {position}): damaged, or something else"
