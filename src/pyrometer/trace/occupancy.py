"""Occupancy of kernels, and the waves in which their blocks run; `analysis.kernels` says what these mean."""

from __future__ import annotations

import polars as pl

from pyrometer.trace.trace import RankTrace

MAX_BLOCKS = {"7.5": 16, "8.6": 16, "8.7": 16, "8.9": 24, "12.0": 24}
"""Resident blocks per multiprocessor by compute capability, where it is not 32."""

PARTITIONS = 4
"""Of a multiprocessor's register file."""


def with_occupancy(trace: RankTrace, kernels: pl.DataFrame) -> pl.DataFrame:
    """Adds `occupancy, waves, tail_share` and what they come from to kernels; null where the file does not say.

    Args:
        trace: one rank, which describes its devices.
        kernels: with `device` and the columns of the table `kernels`.
    """
    return (
        kernels.join(_devices(trace), on="device", how="left", maintain_order="left")
        .with_columns(resident=_resident())
        .with_columns(
            occupancy=_occupancy(), waves=_product("grid") / (pl.col("num_sms") * pl.col("resident"))
        )
        .with_columns(
            tail_share=pl.when(pl.col("waves") > 0).then(1 - pl.col("waves") / pl.col("waves").ceil())
        )
    )


def _devices(trace: RankTrace) -> pl.DataFrame:
    fields = {
        "num_sms": pl.Int64,
        "max_threads_per_sm": pl.Int64,
        "registers_per_sm": pl.Int64,
        "shared_memory_per_sm_bytes": pl.Int64,
        "warp_size": pl.Int64,
    }
    rows = [
        {
            "device": info.id,
            "max_blocks_per_sm": MAX_BLOCKS.get(info.compute_capability or "", 32),
            "reserved_bytes": 0 if (info.compute_capability or "").startswith(("6.", "7.")) else 1024,
            **{name: getattr(info, name) for name in fields},
        }
        for info in {device.id: device for device in trace.info.devices}.values()
    ]
    return pl.DataFrame(
        rows, schema={"device": pl.Int32, "max_blocks_per_sm": pl.Int64, "reserved_bytes": pl.Int64, **fields}
    )


def _resident() -> pl.Expr:
    """Blocks that one multiprocessor holds at a time, where the file describes block, kernel and device.

    Limits as in NVIDIA's occupancy calculator: blocks; threads; registers, allotted to warps in units of 256 in each of
    four partitions; shared memory, of which each block takes 1 KiB more from compute capability 8.0 on.
    """
    warp_size = pl.col("warp_size").fill_null(32)
    warps = (_product("block") / warp_size).ceil()
    by_threads = (pl.col("max_threads_per_sm") / (warps * warp_size)).floor()
    per_warp = (pl.col("registers_per_thread") * warp_size / 256).ceil() * 256
    partition = pl.col("registers_per_sm") / PARTITIONS
    by_registers = ((partition / per_warp).floor() * PARTITIONS / warps).floor()
    memory = pl.col("shared_memory_bytes") + pl.col("reserved_bytes")
    by_memory = (pl.col("shared_memory_per_sm_bytes") / memory).floor()
    limits = pl.min_horizontal(
        "max_blocks_per_sm",
        by_threads,
        pl.when(per_warp > 0).then(by_registers),
        pl.when(memory > 0).then(by_memory),
    )
    return pl.when(by_threads.is_not_null() & (warps > 0)).then(pl.max_horizontal(1.0, limits))


def _occupancy() -> pl.Expr:
    """As the profiler estimates it: resident threads over those that fit, before the tail.

    It writes 0 for kernels that ask for more shared memory than the default limit; there it is calculated anew.
    """
    per_sm = _product("grid") / pl.col("num_sms")
    computed = pl.min_horizontal(per_sm, "resident") * _product("block") / pl.col("max_threads_per_sm")
    known = pl.col("resident").is_not_null() & per_sm.is_not_null()
    reported = pl.col("occupancy_percent") / 100
    return pl.when((reported > 0) | ~known).then(reported).otherwise(pl.min_horizontal(computed, 1.0))


def _product(column: str) -> pl.Expr:
    parts = [pl.col(column).list.get(i, null_on_oob=True) for i in range(3)]
    return (parts[0] * parts[1].fill_null(1) * parts[2].fill_null(1)).cast(pl.Float64)
