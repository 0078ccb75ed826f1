"""The processor, as the operating system describes it. Paths are arguments, so that any machine's can be read."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import Annotated

import psutil

from pyrometer.quantity import Bytes
from pyrometer.record import Record, doc

SYSTEM = Path("/")


class Cpu(Record, frozen=True, kw_only=True):
    """The processor."""

    model: str
    isa: Annotated[str, doc("highest vector extension that torch uses, such as AVX512")]
    physical_cores: int | None
    logical_cores: int
    usable_cpus: Annotated[float, doc("after affinity and cgroup limits")]
    numa_nodes: int | None


def read_cpu(isa: str, root: Path = SYSTEM) -> Cpu:
    """Describe the processor; `isa` is what torch says."""
    logical = psutil.cpu_count(logical=True) or 1
    return Cpu(
        model=cpu_model(root),
        isa=isa,
        physical_cores=psutil.cpu_count(logical=False),
        logical_cores=logical,
        usable_cpus=usable_cpus(root),
        numa_nodes=numa_nodes(root),
    )


def cpu_model(root: Path = SYSTEM) -> str:
    """The marketing name, such as `AMD EPYC 7763 64-Core Processor`; the architecture where there is none."""
    info = root / "proc/cpuinfo"
    if info.is_file():
        fields = dict(
            (part.strip() for part in line.split(":", 1))
            for line in info.read_text().splitlines()
            if ":" in line
        )
        for key in ("model name", "Model", "Hardware", "cpu model"):
            if fields.get(key):
                return fields[key]
    if platform.system() == "Darwin":
        asked = subprocess.run(
            ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"],
            capture_output=True,
            text=True,
            check=False,
        )
        if asked.returncode == 0:
            return asked.stdout.strip()
    return platform.processor() or platform.machine()


def usable_cpus(root: Path = SYSTEM) -> float:
    """CPUs that this process may keep busy: its affinity, or the quota of its control group if that is less."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else psutil.cpu_count() or 1
    quota = cgroup_cpus(root)
    return float(affinity) if quota is None else min(float(affinity), quota)


def cgroup_cpus(root: Path = SYSTEM) -> float | None:
    """CPU quota of the control group (version 2, then 1); `None` without a limit."""
    unified = _words(root / "sys/fs/cgroup/cpu.max")
    if len(unified) == 2 and unified[0] != "max":
        return int(unified[0]) / int(unified[1])
    quota = _words(root / "sys/fs/cgroup/cpu/cpu.cfs_quota_us")
    period = _words(root / "sys/fs/cgroup/cpu/cpu.cfs_period_us")
    if quota and period and int(quota[0]) > 0:
        return int(quota[0]) / int(period[0])
    return None


def memory_limit(root: Path = SYSTEM) -> Bytes:
    """Memory that this process may use: the machine's, or its control group's limit if that is less."""
    total = int(psutil.virtual_memory().total)
    for name in ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"):
        words = _words(root / name)
        if words and words[0].isdigit():
            return min(total, int(words[0]))
    return total


def numa_nodes(root: Path = SYSTEM) -> int | None:
    """Number of memory nodes; `None` where the system does not say."""
    return len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or None


def _words(path: Path) -> list[str]:
    return path.read_text().split() if path.is_file() else []
