"""Processor, memory, network and disk, of this process and of the machine."""

from __future__ import annotations

from typing import Any

import psutil

from pyrometer.monitor.signals.signal import Reading


class SystemSignal:
    """Read every five ticks: the calls take some 200 µs in all."""

    every_ticks = 5
    from_zero = False

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._process.cpu_percent()
        psutil.cpu_percent()

    def read(self) -> Reading:
        """The values now."""
        with self._process.oneshot():
            times = self._process.cpu_times()
            gauges = {
                "process_memory_bytes": float(self._process.memory_info().rss),
                "process_threads": float(self._process.num_threads()),
                "process_cpu_cores": self._process.cpu_percent() / 100,
            }
        memory = psutil.virtual_memory()
        gauges |= {
            "host_cpu_busy_share": psutil.cpu_percent() / 100,
            "host_memory_available_bytes": float(memory.available),
            "host_memory_total_bytes": float(memory.total),
        }
        totals = {"process_cpu_seconds": times.user + times.system}
        return Reading(gauges, totals | _network() | _disk())


def _network() -> dict[str, float]:
    seen: Any = psutil.net_io_counters()
    if seen is None:  # no interface
        return {}
    return {
        'host_network_bytes{direction="received"}': float(seen.bytes_recv),
        'host_network_bytes{direction="sent"}': float(seen.bytes_sent),
        "host_network_errors": float(seen.errin + seen.errout + seen.dropin + seen.dropout),
    }


def _disk() -> dict[str, float]:
    seen: Any = psutil.disk_io_counters()
    if seen is None:  # no disk of its own, as in a container
        return {}
    return {
        'host_disk_bytes{direction="read"}': float(seen.read_bytes),
        'host_disk_bytes{direction="written"}': float(seen.write_bytes),
        'host_disk_operations{direction="read"}': float(seen.read_count),
        'host_disk_operations{direction="written"}': float(seen.write_count),
        'host_disk_wait_seconds{direction="read"}': seen.read_time / 1e3,
        'host_disk_wait_seconds{direction="written"}': seen.write_time / 1e3,
    }
