"""Decoding the `args` of many events at once, by the shape that their kind has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

import msgspec
import polars as pl

from pyrometer.trace import schema
from pyrometer.trace.kinds import Kind
from pyrometer.trace.reading import shapes

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

ABSENT = msgspec.Raw(b"{}")


@cache
def _decoder(shape: type[msgspec.Struct], *, strict: bool) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(list[shape], strict=strict)  # type: ignore[valid-type]


def decode(raws: Sequence[msgspec.Raw], shape: type[msgspec.Struct]) -> list[Any]:
    """Decode the arguments of many events in one go.

    Where one does not fit, numbers in quotes are accepted; where that is not enough, each is decoded alone and the
    values that do not fit are left out, as if the file did not hold them.
    """
    text = b"[" + b",".join(raws) + b"]"
    for strict in (True, False):
        try:
            return _decoder(shape, strict=strict).decode(text)  # type: ignore[no-any-return]
        except msgspec.MsgspecError:
            continue
    return [_fitting(raw, shape) for raw in raws]


def _fitting(raw: msgspec.Raw, shape: type[msgspec.Struct]) -> Any:
    try:
        held = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except msgspec.MsgspecError:
        return shape()
    kept = {}
    for spec in msgspec.structs.fields(shape):
        if spec.encode_name in held:
            try:
                kept[spec.name] = msgspec.json.decode(held[spec.encode_name], type=spec.type, strict=False)
            except msgspec.MsgspecError:
                continue
    return shape(**kept)


def frame(args: Sequence[Any], names: Sequence[str], table: schema.Table) -> pl.DataFrame:
    """Columns of decoded arguments, typed as in the table."""
    columns = []
    for name in names:
        values = [getattr(one, name) for one in args]
        dtype = table[name].dtype
        if dtype == pl.String:
            values = [_text(value) for value in values]
        columns.append(pl.Series(name, values, dtype=dtype, strict=False))
    return pl.DataFrame(columns)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if value is msgspec.UNSET:
        return None
    return bytes(value).decode() if isinstance(value, msgspec.Raw) else str(value)
