"""What the machine really reaches, measured: arithmetic, copies, and the cost of talking to the device.

The peaks hold for the settings in force (threads and so on), all of which are part of the environment's fingerprint;
under that they are cached. Only the precision of float32 on CUDA is taken apart: `float32` is IEEE, `tf32` beside it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from pyrometer.errors import InputError
from pyrometer.hardware.conditions import Conditions
from pyrometer.hardware.datasheet import DatasheetPeaks
from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc, from_json, to_json

if TYPE_CHECKING:
    import torch

    from pyrometer.hardware.timing import Timer

DEFAULT_BUDGET_S = 10.0


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


def measure_peaks(
    device: torch.device, *, timer: Timer | None = None, budget_s: Seconds = DEFAULT_BUDGET_S
) -> Peaks:
    """Measure what a device reaches, within a time budget.

    Torch's random state, flags and threads are left as they are; memory taken on a GPU is given back, though its
    allocator's statistics of peak use remember it.

    Args:
        device: the CPU or a CUDA device.
        timer: gives the best time of a call; by default `timing.best_time` on the device.
        budget_s: no new size is tried that would probably end later; each kind of work is tried at least once.

    Raises:
        InputError: another kind of device, or a budget that is not positive.
    """
    if device.type not in {"cpu", "cuda"}:
        raise InputError(f"device {device}: its peaks cannot be measured; legal are cpu and cuda")
    if budget_s <= 0:
        raise InputError(f"budget: got {budget_s} s; it must be positive, for example 10 s")
    from pyrometer.hardware.peak_search import search_peaks

    return search_peaks(device, timer, budget_s)


def cached_peaks(
    device: torch.device, fingerprint: str, directory: Path, *, budget_s: Seconds = DEFAULT_BUDGET_S
) -> Peaks:
    """The peaks that were saved for this machine and device, or else measured now and saved.

    A cache that cannot be read is replaced, and one that cannot be written is done without; `skipped` says why.

    Raises:
        InputError: see `measure_peaks`.
    """
    if str(device) == "cuda":
        import torch

        device = torch.device("cuda", torch.cuda.current_device())
    skipped: dict[str, str] = {}
    try:
        found = load_cached(fingerprint, directory, str(device))
        if found is not None:
            return found
    except InputError as error:
        skipped["cache"] = str(error)
    measured = measure_peaks(device, budget_s=budget_s)
    try:
        save_cached(measured, fingerprint, directory)
    except OSError as error:
        skipped["cache"] = f"the peaks cannot be saved: {error}"
    return msgspec.structs.replace(measured, skipped=measured.skipped | skipped)


def load_cached(fingerprint: str, directory: Path, device: str = "cpu") -> Peaks | None:
    """Peaks that were saved under this fingerprint for a device such as `cuda:0`; `None` when there are none.

    Raises:
        InputError: the file is damaged, cannot be read, or was written in a way that this version does not read.
    """
    path = _path(fingerprint, directory, device)
    try:
        return from_json(Peaks, path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, InputError) as error:
        raise InputError(
            f"{path}: cannot be read as saved peaks: {error}; delete it to measure again"
        ) from error


def save_cached(peaks: Peaks, fingerprint: str, directory: Path) -> Path:
    """Save peaks under a fingerprint, in one piece or not at all; returns the file."""
    directory.mkdir(parents=True, exist_ok=True)
    path = _path(fingerprint, directory, peaks.device)
    beside = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        beside.write_bytes(to_json(peaks))
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return path


def _path(fingerprint: str, directory: Path, device: str) -> Path:
    return directory / f"peaks-{fingerprint}-{device.replace(':', '-')}.json"
