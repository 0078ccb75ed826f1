"""Decoding the `args` of many events at once, by the shape that their kind has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from pyrometer.trace.kinds import Kind
from pyrometer.trace.reading import shapes
from pyrometer.trace.reading.decoding import DECODE_ERRORS, decode_list, decode_loosely, decoder
from pyrometer.trace.reading.mending import attempts

SHAPES: Mapping[Kind, type[msgspec.Struct]] = MappingProxyType(
    {
        Kind.CPU_OP: shapes.OpArgs,
        Kind.USER_ANNOTATION: shapes.OpArgs,
        Kind.RUNTIME: shapes.RuntimeArgs,
        Kind.DRIVER: shapes.RuntimeArgs,
        Kind.KERNEL: shapes.KernelArgs,
        Kind.MEMCPY: shapes.CopyArgs,
        Kind.MEMSET: shapes.CopyArgs,
        Kind.SYNC: shapes.SyncArgs,
        Kind.DEVICE_EVENT: shapes.DeviceArgs,
        Kind.GPU_USER_ANNOTATION: shapes.DeviceArgs,
        Kind.PYTHON_FUNCTION: shapes.PythonArgs,
        Kind.MEMORY: shapes.MemoryArgs,
    }
)
"""Kinds that are not named keep their arguments as text, in `extras`."""

TABLE_OF: Mapping[Kind, str] = MappingProxyType(
    {
        Kind.CPU_OP: "ops",
        Kind.USER_ANNOTATION: "ops",
        Kind.KERNEL: "kernels",
        Kind.MEMCPY: "copies",
        Kind.MEMSET: "copies",
        Kind.SYNC: "syncs",
        Kind.PYTHON_FUNCTION: "python",
        Kind.MEMORY: "memory",
    }
)
"""Kind of event: the table that its arguments go to."""

Finding = tuple[int, frozenset[str]]
"""Number of an event in its group, and what was wrong with its arguments."""


def decode(raws: Sequence[msgspec.Raw], shape: type[msgspec.Struct]) -> tuple[list[Any], list[Finding]]:
    """Decode the arguments of many events in one go.

    Numbers in quotes are accepted. Where the whole does not decode, each is decoded alone: damaged text is mended, and
    values that do not fit are left out, as if the file did not hold them.
    """
    text = b"[" + b",".join(raws) + b"]"
    try:
        return decode_list(text, shape), []
    except DECODE_ERRORS:
        return _one_by_one(raws, shape)


def _one_by_one(raws: Sequence[msgspec.Raw], shape: type[msgspec.Struct]) -> tuple[list[Any], list[Finding]]:
    values, findings = [], []
    for i, raw in enumerate(raws):
        value, codes = _single(bytes(raw), shape)
        values.append(value)
        if codes:
            findings.append((i, codes))
    return values, findings


def _single(text: bytes, shape: type[msgspec.Struct]) -> tuple[Any, frozenset[str]]:
    codes: frozenset[str] = frozenset()
    read = decode_loosely(text, shape)
    if read is None:
        for mended in attempts(text):
            read = decode_loosely(mended.text, shape)
            if read is not None:
                codes = mended.codes
                break
    if read is None:
        return shape(), frozenset() if text == b"null" else frozenset({"wrong_type"})
    return read.value, codes | {"wrong_type"} if read.misfits else codes


def readable(raws: Sequence[msgspec.Raw]) -> tuple[list[str], list[Finding]]:
    """The arguments of many events as valid JSON text, for the kinds that have no table of their own."""
    texts = [bytes(raw) for raw in raws]
    try:
        decoder(list[dict[str, Any]]).decode(b"[" + b",".join(texts) + b"]")
        return [text.decode() for text in texts], []
    except DECODE_ERRORS:
        pass  # told below, one by one
    findings = []
    for i, text in enumerate(texts):
        texts[i], codes = _mended(text)
        if codes:
            findings.append((i, codes))
    return [text.decode(errors="replace") for text in texts], findings


def _mended(text: bytes) -> tuple[bytes, frozenset[str]]:
    """One object as valid JSON; an empty one where it is none."""
    try:
        decoder(dict[str, Any]).decode(text)
    except DECODE_ERRORS:
        mended = next(iter(attempts(text)), None)
        if mended is not None:
            return mended.text, mended.codes
        return b"{}", frozenset() if text == b"null" else frozenset({"wrong_type"})
    return text, frozenset()
