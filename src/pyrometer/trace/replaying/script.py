"""`pyrometer trace FILE --replay OP`: the costliest kind of call of an operator, as a file that measures it.

Calls of a kind have the same shapes and dtypes; the costliest takes most time on the device, or on the host where there is
none. The file needs torch and Pyrometer, no trace: run it, or pass it to `pyrometer bench FILE:workload`, `check`, `compare`.
"""

from __future__ import annotations

import difflib
import json
from typing import Any, NamedTuple

import polars as pl

from pyrometer.errors import InputError
from pyrometer.quantity import counted, format_seconds
from pyrometer.trace.analysis.operators import operators
from pyrometer.trace.kinds import is_op
from pyrometer.trace.replaying.arguments import Missing, Recorded, Tensor, named_value, rebuild
from pyrometer.trace.replaying.overloads import overload_of, schema_of
from pyrometer.trace.trace import RankTrace

ONE_LINE = r"\n\s*"


class Chosen(NamedTuple):
    """The kind of call that is replayed."""

    recorded: list[Recorded]
    calls: int
    time_ns: int  # of all of them
    on_device: bool
    other_kinds: int


def replay_script(trace: RankTrace, op: str) -> str:
    """The text of a benchmark of one operator of a trace.

    Args:
        trace: one rank.
        op: name, such as `aten::mm`.

    Raises:
        InputError: the trace does not hold the operator or its shapes, or an argument cannot be rebuilt.
    """
    chosen = _choose(trace, op)
    overload = overload_of(op, chosen.recorded)
    tensors: list[Tensor] = []
    texts: list[str] = []
    for argument, recorded in zip(schema_of(overload).arguments, chosen.recorded, strict=True):
        try:
            made = rebuild(argument, recorded)
        except Missing as missing:
            raise InputError(
                f"--replay {op}: {missing}; replay an operator below it, or another one"
            ) from None
        if made is None:
            texts.append("")
            continue
        by_name = argument.kwarg_only or "" in texts  # what follows an argument that keeps its default
        tensors += [made] if isinstance(made, Tensor) else []
        value = made.name if isinstance(made, Tensor) else named_value(argument, made)
        texts.append(f"{argument.name}={value}" if by_name else value)
    call = f"torch.ops.{overload}({', '.join(filter(None, texts))})"
    return _text(trace, chosen, tensors, {"op": op, "schema": schema_of(overload), "call": call})


def _choose(trace: RankTrace, op: str) -> Chosen:
    kinds = operators(trace, by="shape").filter(pl.col("name") == op)
    if not kinds.height:
        names = trace.events.filter(is_op())["name"].unique().to_list()
        near = difflib.get_close_matches(op, names, n=1)
        raise InputError(
            f"--replay {op}: the trace holds no such operator{f'; did you mean {near[0]}?' if near else ''}"
        )
    on_device = int(kinds["device_total_ns"].sum()) > 0
    time = "device_total_ns" if on_device else "host_total_ns"
    row = kinds.sort(time, descending=True, maintain_order=True).row(0, named=True)
    if row["input_dims"] is None:
        raise InputError(f"--replay {op}: the trace holds no shapes; record with record_shapes=True")
    one_line = pl.col("input_dims", "input_types").str.replace_all(ONE_LINE, "")
    calls = trace.tables["ops"].join(trace.events.filter(is_op()).select("event", "name"), on="event")
    like = calls.with_columns(one_line).filter(
        (pl.col("name") == op)
        & pl.col("input_dims").eq_missing(pl.lit(row["input_dims"]))
        & pl.col("input_types").eq_missing(pl.lit(row["input_types"]))
    )
    return Chosen(
        _recorded(like.row(0, named=True)), row["calls"], int(row[time]), on_device, kinds.height - 1
    )


def _recorded(row: dict[str, Any]) -> list[Recorded]:
    dims, kinds = json.loads(row["input_dims"]), json.loads(row["input_types"] or "[]")
    strides = json.loads(row["input_strides"] or "[]") or [None] * len(dims)
    texts = json.loads(row["concrete_inputs"] or "[]") or [""] * len(dims)
    return [Recorded(*argument) for argument in zip(kinds, dims, strides, map(str, texts), strict=True)]


def _text(trace: RankTrace, chosen: Chosen, tensors: list[Tensor], told: dict[str, Any]) -> str:
    device = next((device.name for device in trace.info.devices if device.name), "the device")
    took = format_seconds(chosen.time_ns / chosen.calls * 1e-9)
    where = f"on {device}" if chosen.on_device else "on the host"
    others = (
        f"\nThe trace holds {counted(chosen.other_kinds, 'other kind')} of its calls, with other shapes or types, which took less."
        if chosen.other_kinds
        else ""
    )
    floats = [tensor for tensor in tensors if "float" in tensor.dtype]
    below = max(min((size for tensor in floats or tensors for size in tensor.shape), default=2), 1)
    made = "\n".join(
        f"    {tensor.name} = make({tensor.shape}, torch.{tensor.dtype}{f', {tensor.strides}' if tensor.strides else ''})"
        for tensor in tensors
    )
    return TEMPLATE.format(
        **told,
        calls=counted(chosen.calls, "call"),
        took=took,
        where=where,
        others=others,
        below=below,
        arguments=made,
        names=", ".join(tensor.name for tensor in tensors),
        passed="".join(f"{tensor.name}, " for tensor in tensors),
    )


TEMPLATE = '''"""{op}, with the shapes, types and strides of its costliest calls in a trace.

There {calls} took {took} each, {where}.{others}
Values of tensors were not recorded: they are random, integers from 0 to {below} - 1.

    python FILE                          measure it
    pyrometer bench FILE:workload        the same, with all options

{schema}
"""

import torch

import pyrometer

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def make(shape, dtype, strides=None):
    """A random tensor; with strides its memory lies as it did."""
    steps = strides or torch.empty(shape, device="meta").stride()
    length = 1 + sum(step * (size - 1) for size, step in zip(shape, steps)) if 0 not in shape else 0
    if dtype.is_floating_point or dtype.is_complex:
        memory = torch.randn(length, device=DEVICE).to(dtype)
    else:
        memory = torch.randint(0, {below}, (length,), device=DEVICE).to(dtype)
    return memory.as_strided(shape, steps)


def workload():
    torch.manual_seed(0)
{arguments}

    def call({names}):
        return {call}

    return pyrometer.Call(call, {passed}name="{op}", device=DEVICE)


if __name__ == "__main__":
    found = pyrometer.measure(workload())
    print(f"{{found.median_s * 1e6:.2f}} µs a call ({{found.ci_low_s * 1e6:.2f}}–{{found.ci_high_s * 1e6:.2f}}) on {{DEVICE}}")
'''
