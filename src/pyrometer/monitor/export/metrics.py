"""Every metric that a monitor tells by itself: its kind, what it means, and since which version; dashboards and docs read this too.

A metric that is renamed stays under its old name for two minor versions, marked as deprecated.
"""

from __future__ import annotations

from typing import NamedTuple

from pyrometer.monitor.instruments import Kind

PREFIX = "pyrometer_"


class Metric(NamedTuple):
    """One metric, without its prefix and without the `_total` of counters."""

    kind: Kind
    help: str


_COUNTERS = {
    "requests": "Calls of a watched function that ended, those that raised too",
    "request_errors": "Calls that raised, by type of the exception",
    "units": "Frames, tokens or what calls are worth",
    "samples_dropped": "Calls whose latency found no room, because more came than were taken",
    "outputs_checked": "Sampled outputs that were looked at",
    "outputs_with_nan": "Sampled outputs with a NaN",
    "outputs_with_infinity": "Sampled outputs with an infinity",
    "training_non_finite": "Losses and gradient norms that were NaN or infinite",
    "compilations": "Compilations by torch.compile",
    "recompilations": "Compilations of code that had been compiled before",
    "graph_breaks": "Graph breaks that Dynamo met",
    "device_out_of_memory": "Allocations that failed",
    "device_allocation_retries": "Allocations that first had to free cached blocks",
    "device_allocations": "Allocations from torch's caching allocator",
    "process_cpu_seconds": "Processor time of the process",
    "host_network_bytes": "Bytes over all interfaces",
    "host_network_errors": "Packets lost or damaged",
    "host_disk_bytes": "Bytes of all disks",
    "host_disk_operations": "Operations of all disks",
    "host_disk_wait_seconds": "Time that operations of disks took; over operations, their latency",
    "monitor_faults": "Faults of the monitor, and of callbacks that it called",
    "monitor_events_dropped": "Calls that were to be told in full and found no room",
    "monitor_ticks_dropped": "Ticks that an exporter lost during an outage",
    "monitor_series_capped": "Records of label values beyond the most series of a metric",
    "monitor_records_dropped": "Records of gauges, counters and histograms that found no room",
}
_GAUGES = {
    "up": "Whether the monitor's thread lives",
    "requests_in_flight": "Calls under way",
    "request_latency_minute_seconds": "Quantiles of the last minute, within 1.1 percent",
    "output_least": "Least finite value of sampled outputs within the last tick",
    "output_largest": "Largest finite value of sampled outputs within the last tick",
    "training_loss": "Loss of the last step",
    "training_gradient_norm": "Norm of the gradients of the last step that was looked at",
    "training_loss_scale": "Scale of the loss in mixed precision",
    "training_data_share": "Share of the steps' time that they waited for data",
    "compiled_frames": "Code objects that torch.compile compiled",
    "device_memory_allocated_bytes": "Held by tensors",
    "device_memory_peak_bytes": "Most that tensors held",
    "device_memory_reserved_bytes": "Held by torch's caching allocator",
    "device_memory_unusable_bytes": "Free within blocks that cannot be given back",
    "device_busy_share": "Share of time that a kernel ran",
    "device_memory_used_bytes": "In use on the device by all processes",
    "device_memory_total_bytes": "Of the device",
    "device_power_watts": "Drawn by the device",
    "device_temperature_celsius": "Of the device",
    "process_memory_bytes": "Resident memory",
    "process_threads": "Threads of the process",
    "process_cpu_cores": "Cores that the process keeps busy",
    "host_cpu_busy_share": "Share of all cores that is busy",
    "host_memory_available_bytes": "Memory that programs can have",
    "host_memory_total_bytes": "Memory of the machine",
    "degradation_rung": "Whether a ladder of degradation stands on this rung",
    "monitor_alarms": "Alarms that are on",
}
_HISTOGRAMS = {
    "request_latency_seconds": "Latency of calls that returned, on the clock of the host",
    "request_device_seconds": "Time of sampled calls on the device",
    "request_first_item_seconds": "Time until a generator gave its first item",
}
METRICS: dict[str, Metric] = {
    **{name: Metric("counter", text) for name, text in _COUNTERS.items()},
    **{name: Metric("gauge", text) for name, text in _GAUGES.items()},
    **{name: Metric("histogram", text) for name, text in _HISTOGRAMS.items()},
}
