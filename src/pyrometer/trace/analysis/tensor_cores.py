"""Matrix products and convolutions that could run on matrix units (tensor cores, MFMA) and do not, and why.

Eligible is what a matrix product, convolution or attention calculates in a type that the device's matrix units take.
float32 counts where the device has TF32. Libraries reach full speed when the sizes that lie innermost in memory are
multiples of 16 bytes; others are padded or fall back.
"""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.costs.call import NotRecordedError, parse_call
from pyrometer.trace.costs.op_costs import Kindred, op_costs
from pyrometer.trace.costs.tensors import ITEM_BYTES, Tensor
from pyrometer.trace.kinds import Kind
from pyrometer.trace.naming.kernel_names import read_name
from pyrometer.trace.trace import RankTrace

FIRST_CAPABILITY = {
    "float16": 7.0,
    "int8": 7.5,
    "bfloat16": 8.0,
    "tf32": 8.0,
    "float64": 8.0,
    "float8": 8.9,
    "float4": 10.0,
}
"""NVIDIA's compute capability from which tensor cores take a type."""

ALIGNMENT_BYTES = 16

PRODUCTS = frozenset({"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::matmul"})
"""Operators whose result is as wide as their second matrix."""

UNKNOWN = "the name of its kernel does not say on which units it runs"

SCHEMA = {
    "op": pl.String,
    "shapes": pl.String,
    "arithmetic": pl.String,
    "calls": pl.Int64,
    "time_ns": pl.Int64,
    "tensor_core_ns": pl.Int64,
    "unknown_core_ns": pl.Int64,
    "eligible": pl.Boolean,
    "reason": pl.String,
    "odd_size": pl.Int64,
    "multiple": pl.Int64,
}


class Odd(NamedTuple):
    """A size that slows matrix units, and what it should be a multiple of."""

    size: int
    multiple: int

    def __str__(self) -> str:
        return f"size {self.size} is not a multiple of {self.multiple}"


class Eligibility(NamedTuple):
    """Whether matrix units could do it, and what is in the way or slows it."""

    eligible: bool
    reason: str | None = None
    odd: Odd | None = None


@analysis("tensor_cores")
def tensor_cores(trace: RankTrace) -> pl.DataFrame:
    """Per operator and shape: time in all, on matrix units, whether it is eligible, and a reason where it is not used.

    Time off the matrix units includes an operator's small kernels, such as a split sum or a layout change.
    """
    costs = op_costs(trace)
    matrix = [kindred.cost is not None and kindred.cost.unit == "matrix" for kindred in costs.kindreds]
    if not costs.has_device or not any(matrix):
        return pl.DataFrame(schema=SCHEMA)
    owner = costs.owner[costs.work]
    names, kinds = trace.events["name"].gather(costs.work), trace.events["kind"].gather(costs.work)
    used = {
        name: read_name(name).tensor_cores for name in names.drop_nulls().unique().to_list()
    }  # None: unknown
    work = pl.DataFrame(
        {
            "kindred": costs.kindred[owner],
            "owner": owner,
            "time_ns": costs.time,
            "used": names.replace_strict(used, default=False, return_dtype=pl.Boolean),
        }
    ).filter((pl.Series(owner) >= 0) & (kinds == Kind.KERNEL.value))
    grouped = work.group_by("kindred").agg(
        pl.col("owner").n_unique().cast(pl.Int64).alias("calls"),
        pl.col("time_ns").sum(),
        pl.col("time_ns").filter("used").sum().alias("tensor_core_ns"),
        pl.col("time_ns").filter(pl.col("used").is_null()).sum().alias("unknown_core_ns"),
    )
    capability = _capability(trace)
    rows = [
        _row(costs.kindreds[row["kindred"]], row, capability)
        for row in grouped.iter_rows(named=True)
        if matrix[row["kindred"]]
    ]
    return (
        pl.DataFrame(rows, schema=SCHEMA, orient="row")
        .group_by("op", "shapes", "arithmetic", "eligible", "reason", "odd_size", "multiple")
        .agg(pl.col("calls", "time_ns", "tensor_core_ns", "unknown_core_ns").sum())
        .select(list(SCHEMA))
        .sort("time_ns", "op", "shapes", descending=[True, False, False])
    )


def _row(one: Kindred, row: dict[str, int], capability: float | None) -> tuple[object, ...]:
    cost = one.cost
    dtype = cost.dtype if cost is not None else ""
    used = row["tensor_core_ns"] > 0
    unknown = row["unknown_core_ns"] > 0 and not used
    found = eligibility(one, capability)
    arithmetic = dtype
    if used and found.eligible and dtype == "float32":
        arithmetic, found = "tf32", _aligned(one, dtype)
    if unknown and found.odd is None:
        found = found._replace(reason=UNKNOWN)
    return (
        one.name, "".join((one.dims or "").split()), arithmetic, row["calls"], row["time_ns"], row["tensor_core_ns"], row["unknown_core_ns"],
        found.eligible or used, found.reason, *(found.odd or (None, None)),
    )  # fmt: skip


def eligibility(one: Kindred, capability: float | None) -> Eligibility:
    """Whether a device of this compute capability could use matrix units; one without (AMD, unknown) takes 16 bit."""
    dtype = one.cost.dtype if one.cost is not None else ""
    if dtype == "float32":
        if capability is not None and capability < FIRST_CAPABILITY["tf32"]:
            return Eligibility(eligible=False, reason="float32; this device has no TF32: use float16")
        reason = "float32; allow TF32 (torch.set_float32_matmul_precision) or use bfloat16"
        return Eligibility(eligible=capability is not None, reason=reason)
    first = FIRST_CAPABILITY.get(dtype)
    if first is None:
        return Eligibility(eligible=False, reason=f"{dtype} is no type of matrix units")
    if capability is not None and capability < first:
        return Eligibility(eligible=False, reason=f"this device's matrix units do not take {dtype}")
    return _aligned(one, dtype)


def _aligned(one: Kindred, dtype: str) -> Eligibility:
    """Eligible, and as fast as matrix units are where no size is odd."""
    odd = _misaligned(one, dtype)
    return Eligibility(eligible=True, reason=None if odd is None else str(odd), odd=odd)


def _misaligned(one: Kindred, dtype: str) -> Odd | None:
    """Sizes that lie innermost in memory and are no multiple of 16 bytes; of convolutions the channels."""
    multiple = ALIGNMENT_BYTES // max(ITEM_BYTES.get(dtype, 1), 1)
    try:
        call = parse_call(one.name, one.dims, one.types, one.strides)
    except NotRecordedError:
        return None
    operands = [tensor for tensor in call.all_tensors() if len(tensor.shape) >= 2 and tensor.dtype == dtype]
    if "conv" in one.name:
        sizes = [tensor.shape[1] for tensor in operands]
    else:
        sizes = [_innermost(tensor) for tensor in operands]
        sizes += [operands[-1].shape[-1]] if one.name in PRODUCTS and len(operands) > 1 else []
    odd = next((size for size in sizes if size % multiple), None)
    return None if odd is None else Odd(odd, multiple)


def _innermost(tensor: Tensor) -> int:
    """Size of the dimension whose elements are neighbours in memory; the last where strides are not recorded."""
    strides = tensor.strides or ()
    if len(strides) == len(tensor.shape) and 1 in strides:
        return max(size for size, stride in zip(tensor.shape, strides, strict=True) if stride == 1)
    return tensor.shape[-1]


def _capability(trace: RankTrace) -> float | None:
    device = next(iter(trace.info.devices), None)
    try:
        return float(device.compute_capability) if device and device.compute_capability else None
    except ValueError:
        return None
