"""What the machine really reaches, measured: arithmetic, copies, and the cost of talking to the device.

The peaks hold for the settings in force (threads and so on), all of which are part of the environment's fingerprint;
under that they are cached. Only the precision of float32 on CUDA is taken apart: `float32` is IEEE, `tf32` beside it.
"""

from __future__ import annotations

from typing import Annotated

from pyrometer.hardware.record import Conditions
from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc


class Peak(Record, frozen=True, kw_only=True):
    """One peak, with its spread; the unit is in the name of the field that holds it."""

    best: Annotated[float, doc("highest rate, or lowest cost")]
    median: Annotated[float, doc("over the timings")]
    num_timings: int
    work: Annotated[str, doc("what was timed, such as matmul 2048×2048×2048")]


class Peaks(Record, frozen=True, kw_only=True):
    """The measured peaks of one device."""

    device: Annotated[str, doc("cpu, or the device with its index, such as cuda:0")]
    name: str
    matmul_flop_per_s: Annotated[
        dict[str, Peak], doc("by dtype, and tf32 on CUDA; int8 in integer operations")
    ]
    conv_flop_per_s: Annotated[
        dict[str, Peak], doc("by dtype, and tf32 on CUDA; a 3×3 convolution, counted as direct")
    ]
    copy_bytes_per_s: Annotated[
        dict[str, Peak],
        doc("memory and cache: bytes read and written; h2d_pinned, d2h_pageable, …: bytes transferred"),
    ]
    cost_s: Annotated[
        dict[str, Peak],
        doc(
            "launch: host time to issue a tiny operation; CUDA also small_kernel, synchronize and round_trip"
        ),
    ]
    skipped: Annotated[dict[str, str], doc("what was not measured, and why")]
    datasheet: Annotated[DatasheetPeaks | None, doc("the vendor's figures, for a known device")] = None
    threads: Annotated[int | None, doc("torch intra-op threads, on the CPU")] = None
    conditions: Annotated[
        Conditions | None, doc("the machine meanwhile; where others compete for it, peaks come out too low")
    ]
    elapsed_s: Seconds


class DatasheetPeaks(Record, frozen=True, kw_only=True):
    """The vendor's figures for one device."""

    device: str
    flop_per_s: Annotated[
        dict[str, float], doc("by dtype: float32, tf32, bfloat16, float16, float8, int8 (operations)")
    ]
    memory_bytes_per_s: float
    source: str
