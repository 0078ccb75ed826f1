"""Measuring what a device really reaches: every probe of it within one time budget."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import psutil
import torch

from pyrometer.errors import InputError
from pyrometer.hardware.cgroup import memory_limit
from pyrometer.hardware.compute_peaks import CONV_DTYPES, MATMUL_DTYPES, conv_peak, matmul_peak, on_cuda
from pyrometer.hardware.conditions import ConditionsProbe
from pyrometer.hardware.copy_peaks import cache_copy, memory_copy, transfer
from pyrometer.hardware.cost_peaks import launch, round_trip, small_kernel, synchronize
from pyrometer.hardware.cpu import read_cpu
from pyrometer.hardware.datasheet import lookup
from pyrometer.hardware.peaks import DatasheetPeaks, Peak, Peaks
from pyrometer.hardware.rig import Probe, Rig
from pyrometer.hardware.timing import DURATION_S, Timer, timer_for
from pyrometer.quantity import Seconds

DEFAULT_BUDGET_S = 10.0
# One probe takes at most this share of the free memory, because the user's own program is in there too.
_MEMORY_SHARE = 8


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
    started = time.monotonic()
    if str(device) == "cuda":  # without an index
        device = torch.device("cuda", torch.cuda.current_device())
    found: dict[str, dict[str, Peak]] = {group: {} for group in ("matmul", "conv", "copy", "cost")}
    skipped: dict[str, str] = {}
    with _undisturbed(device), ConditionsProbe() as probe:
        rig, name, datasheet = _rig(device, timer or timer_for(device, min(DURATION_S, budget_s / 100)))
        probes = probes_for(device.type)
        for number, (group, what, measure) in enumerate(probes):
            left_s = budget_s - (time.monotonic() - started)
            try:
                found[group][what] = measure(rig, max(left_s, 0.0) / (len(probes) - number))
            except RuntimeError as error:  # torch's way to say that a device or a build cannot do it
                skipped[f"{group} {what}"] = str(error).partition("\n")[0]
    return Peaks(
        device=str(device),
        name=name,
        matmul_flop_per_s=found["matmul"],
        conv_flop_per_s=found["conv"],
        copy_bytes_per_s=found["copy"],
        cost_s=found["cost"],
        skipped=skipped,
        datasheet=datasheet,
        threads=torch.get_num_threads() if device.type == "cpu" else None,
        conditions=probe.conditions,
        elapsed_s=time.monotonic() - started,
    )


def probes_for(device_type: str) -> list[tuple[str, str, Probe]]:
    """Group, name and probe of everything that is measured, the quick ones first: they leave their time to the rest."""
    probes: list[tuple[str, str, Probe]] = [("cost", "launch", launch)]
    if device_type == "cuda":
        probes += [
            ("cost", "small_kernel", small_kernel),
            ("cost", "synchronize", synchronize),
            ("cost", "round_trip", round_trip),
        ]
        probes += [
            ("copy", f"{direction}_{kind}", partial(transfer, direction, kind))
            for direction in ("h2d", "d2h")
            for kind in ("pinned", "pageable")
        ]
    caches = ("l2", "l3") if device_type == "cpu" else ("l2",)
    probes += [("copy", level, partial(cache_copy, level)) for level in caches]
    probes.append(("copy", "memory", memory_copy))
    compute = [("conv", _name(dtype), partial(conv_peak, dtype)) for dtype in CONV_DTYPES]
    compute += [("matmul", _name(dtype), partial(matmul_peak, dtype)) for dtype in MATMUL_DTYPES]
    for group, name, probe in compute:
        if device_type == "cuda" and name == "float32":
            probes.append((group, name, on_cuda(probe, tf32=False)))
            probes.append((group, "tf32", on_cuda(probe, tf32=True)))
        else:
            probes.append((group, name, probe))
    return probes


@contextmanager
def _undisturbed(device: torch.device) -> Iterator[None]:
    """Neither the caller's autocast nor autograd take part; memory taken from a GPU is given back."""
    with torch.inference_mode(), torch.autocast(device.type, enabled=False):
        if device.type != "cuda":
            yield
            return
        with torch.cuda.device(device):
            try:
                yield
            finally:
                torch.cuda.empty_cache()


def _rig(device: torch.device, timer: Timer) -> tuple[Rig, str, DatasheetPeaks | None]:
    """The rig for a device, the device's name, and what its vendor says."""
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        free, _ = torch.cuda.mem_get_info(device)
        caches = {"l2": getattr(properties, "L2_cache_size", None)}
        name, datasheet = properties.name, lookup(properties.name, properties.multi_processor_count)
    else:
        cpu = read_cpu()
        free = min(psutil.virtual_memory().available, memory_limit() or 2**63)
        caches = {"l2": cpu.l2_bytes, "l3": cpu.l3_bytes}
        name, datasheet = cpu.model, None
    known = {level: num_bytes for level, num_bytes in caches.items() if num_bytes}
    rig = Rig(device=device, timer=timer, memory_bytes=free // _MEMORY_SHARE, cache_bytes=known)
    return rig, name, datasheet


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
