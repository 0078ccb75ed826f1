"""The processor, and how much of it this process may use. Paths hang from `root`, so that any machine's can be read."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import psutil

from pyrometer.hardware.cgroup import ROOT, cpu_limit, memory_limit, read_line
from pyrometer.hardware.record import Cpu
from pyrometer.quantity import Bytes

# Part numbers of Arm Ltd. (implementer 0x41), from the kernel's arch/arm64/include/asm/cputype.h; /proc/cpuinfo gives
# no names on Arm.
_ARM_PARTS = {
    "0xd08": "Cortex-A72",
    "0xd0b": "Cortex-A76",
    "0xd0c": "Neoverse N1",
    "0xd40": "Neoverse V1",
    "0xd42": "Cortex-A78AE",
    "0xd49": "Neoverse N2",
    "0xd4f": "Neoverse V2",
}


def read_cpu(root: Path = ROOT) -> Cpu:
    """Describe the processor."""
    import torch

    info = parse_cpuinfo(read_line(root / "proc/cpuinfo") or "")
    caches = _caches(root)
    return Cpu(
        model=model_name(info) or _platform_name(),
        isa=torch.backends.cpu.get_cpu_capability(),
        physical_cores=psutil.cpu_count(logical=False),
        logical_cores=psutil.cpu_count() or 1,
        usable_cpus=usable_cpus(root),
        numa_nodes=len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or None,
        signature=_signature(info),
        l2_bytes=caches.get(2),
        l3_bytes=caches.get(3),
    )


def allowed_cpus() -> frozenset[int]:
    """Numbers of the CPUs in this process's affinity mask; all of them where there is no such thing."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(psutil.cpu_count() or 1))


def usable_cpus(root: Path = ROOT) -> float:
    """CPUs that this process may keep busy: its affinity, or the quota of its control group if that is less."""
    allowed = float(len(allowed_cpus()))
    quota = cpu_limit(root)
    return allowed if quota is None else min(allowed, quota)


def usable_memory_bytes(root: Path = ROOT) -> Bytes:
    """Memory that this process may use: the machine's, or the limit of its control group if that is less."""
    total = psutil.virtual_memory().total
    limit = memory_limit(root)
    return total if limit is None else min(total, limit)


def parse_cpuinfo(text: str) -> dict[str, str]:
    r"""The first value of every key in `/proc/cpuinfo`.

    >>> parse_cpuinfo("processor : 0\nmodel name : AMD EPYC\n\nprocessor : 1")
    {'processor': '0', 'model name': 'AMD EPYC'}
    """
    info: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            info.setdefault(key.strip(), value.strip())
    return info


def model_name(info: dict[str, str]) -> str | None:
    """The processor's name: as written on x86, `cpu` on POWER, looked up by part number on Arm.

    >>> model_name({"CPU implementer": "0x41", "CPU part": "0xd0c"})
    'Arm Neoverse N1'
    """
    if "CPU part" in info:
        part, implementer = info["CPU part"], info.get("CPU implementer", "")
        name = _ARM_PARTS.get(part) if implementer == "0x41" else None
        return f"Arm {name or f'implementer {implementer} part {part}'}"
    return info.get("model name") or info.get("cpu")


def _signature(info: dict[str, str]) -> str | None:
    keys = ("vendor_id", "cpu family", "model", "stepping")
    if any(key not in info for key in keys):
        return None
    vendor, family, model, stepping = (info[key] for key in keys)
    return f"{vendor} family {family} model {model} stepping {stepping}"


def _platform_name() -> str:
    if sys.platform == "darwin":
        asked = subprocess.run(
            ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"],
            capture_output=True,
            text=True,
            check=False,
        )
        return asked.stdout.strip() or platform.machine()
    return platform.processor() or platform.machine() or "unknown"


def _caches(root: Path) -> dict[int, Bytes]:
    """Size of the data caches of the first CPU, by level."""
    sizes: dict[int, Bytes] = {}
    for index in (root / "sys/devices/system/cpu/cpu0/cache").glob("index[0-9]*"):
        level, kind, size = (read_line(index / name) or "" for name in ("level", "type", "size"))
        scale = {"K": 2**10, "M": 2**20}.get(size[-1:])
        if kind != "Instruction" and level.isdigit() and size[:-1].isdigit() and scale:
            sizes[int(level)] = int(size[:-1]) * scale
    return sizes
