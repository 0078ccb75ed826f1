"""Limits that a control group puts on this process: containers, CI runners and job schedulers set them.

Both versions are read: v2 has one tree and the files `cpu.max` and `memory.max`; v1 has one tree per controller and
the files `cpu.cfs_quota_us`, `cpu.cfs_period_us` and `memory.limit_in_bytes`. A limit of any ancestor holds too, so
the lowest on the way to the root counts. Source: the kernel's `admin-guide/cgroup-v2.rst` and `cgroup-v1/`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pyrometer.quantity import Bytes

ROOT = Path("/")


def cpu_limit(root: Path = ROOT) -> float | None:
    """CPUs' worth of time that the control group grants; `None` without a limit. `root` stands in for `/`."""
    limits = [limit for folder in _folders(root, "cpu") if (limit := _cpu_limit(folder)) is not None]
    return min(limits, default=None)


def memory_limit(root: Path = ROOT) -> Bytes | None:
    """Bytes that the control group grants; `None` without a limit. `root` stands in for `/`."""
    texts = (
        read_line(folder / name)
        for folder in _folders(root, "memory")
        for name in ("memory.max", "memory.limit_in_bytes")
    )
    # v1 writes "no limit" as the largest multiple of the page size below 2**63.
    limits = [int(text) for text in texts if text is not None and text.isdigit() and int(text) < 2**60]
    return min(limits, default=None)


def read_line(path: Path) -> str | None:
    """A small file of `/proc` or `/sys` without surrounding blanks; `None` where this kernel has none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _cpu_limit(folder: Path) -> float | None:
    both = read_line(folder / "cpu.max")
    if both is not None:
        quota, _, period = both.partition(" ")
    else:
        quota = read_line(folder / "cpu.cfs_quota_us") or "max"
        period = read_line(folder / "cpu.cfs_period_us") or ""
    # "max" in v2 and "-1" in v1 mean no limit; neither is all digits.
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None


def _folders(root: Path, controller: str) -> Iterator[Path]:
    """The folders of this process's control group and of its ancestors, from the leaf upwards."""
    paths = _own_paths(read_line(root / "proc/self/cgroup") or "")
    for line in (read_line(root / "proc/self/mounts") or "").splitlines():
        _, mount_point, kind, options, *_ = [*line.split(), "", "", "", ""]
        if kind == "cgroup2":
            path = paths.get("", "/")
        elif kind == "cgroup" and controller in options.split(","):
            path = paths.get(controller, "/")
        else:
            continue
        mount = root / mount_point.lstrip("/")
        # Inside a container the path may be the host's and not exist here; then only the mount itself answers.
        group = mount / path.lstrip("/")
        yield from (
            folder for folder in (group, *group.parents) if folder == mount or mount in folder.parents
        )


def _own_paths(text: str) -> dict[str, str]:
    """Map controllers to paths, from `/proc/self/cgroup`; v2 has the empty name."""
    paths: dict[str, str] = {}
    for line in text.splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        paths.update(dict.fromkeys(controllers.split(","), path))
    return paths
