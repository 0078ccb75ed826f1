"""Keeping measured peaks: one JSON file per machine and device, since measuring them takes seconds."""

from __future__ import annotations

from pathlib import Path

import msgspec
import torch

from pyrometer.errors import InputError
from pyrometer.files import replacing
from pyrometer.hardware.peak_search import DEFAULT_BUDGET_S, measure_peaks
from pyrometer.hardware.peaks import Peaks
from pyrometer.quantity import Seconds
from pyrometer.record import from_json, to_json


def cached_peaks(
    device: torch.device, fingerprint: str, directory: Path, *, budget_s: Seconds = DEFAULT_BUDGET_S
) -> Peaks:
    """The peaks that were saved for this machine and device, or else measured now and saved.

    A cache that cannot be read is replaced, and one that cannot be written is done without; `skipped` says why.

    Raises:
        InputError: see `measure_peaks`.
    """
    if str(device) == "cuda":
        device = torch.device("cuda", torch.cuda.current_device())
    skipped: dict[str, str] = {}
    try:
        peaks = load_cached(fingerprint, directory, str(device))
        if peaks is not None:
            return peaks
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
    with replacing(path) as beside:
        beside.write_bytes(to_json(peaks))
    return path


def _path(fingerprint: str, directory: Path, device: str) -> Path:
    return directory / f"peaks-{fingerprint}-{device.replace(':', '-')}.json"
