"""What no setting of the allocator changes: limits, other processes, streams that lag, and memory that is simply full."""

from __future__ import annotations

from pyrometer.advice import Advice
from pyrometer.memory.snapshots.allocator.device import RecordedDevice
from pyrometer.quantity import counted, format_bytes, format_percent


def beyond_settings(device: RecordedDevice) -> list[Advice]:
    """What no setting of the allocator changes."""
    found = [_limited(device), _other_process(device), _pending(device), _simply_full(device)]
    return [advice for advice in found if advice is not None]


def _limited(device: RecordedDevice) -> Advice | None:
    """The device had enough left, so that a limit must have been in the way."""
    for failed in device.report.oom:
        if failed.device_free_bytes >= failed.request_bytes:
            capacity = failed.reserved_bytes + failed.device_free_bytes
            fits = device.try_script(device.script, capacity).fits
            return Advice(
                slug="per-process-fraction",
                fix_class="exact",
                title="Raise the limit for this process",
                why=failed.sentence,
                rewrite="torch.cuda.set_per_process_memory_fraction with a larger fraction, or no call of it",
                effect=f"{sum(fits)} of {counted(len(fits), 'failed request')} would have been served; "
                "other processes on the device get less",
            )
    return None


def _other_process(device: RecordedDevice) -> Advice | None:
    """Memory of the device that is neither ours nor free."""
    total = device.device_total_bytes
    for failed in device.report.oom:
        taken = total - failed.reserved_bytes - failed.device_free_bytes if total else 0
        if total and taken > max(1 << 30, 0.05 * total):
            return Advice(
                slug="other-process",
                fix_class="exact",
                title="Something else holds memory of this device",
                why=f"of {format_bytes(total)}, {format_bytes(failed.reserved_bytes)} were reserved here and "
                f"{format_bytes(failed.device_free_bytes)} free: {format_bytes(taken)} belong to other processes, NCCL "
                "and the CUDA context",
                rewrite="nvidia-smi, to see which processes are on the device",
                effect="up to that much becomes free; the context alone takes some hundred MiB",
            )
    return None


def _pending(device: RecordedDevice) -> Advice | None:
    for instant in device.instants:
        if instant.reserved_bytes and instant.pending_free_bytes > 0.1 * instant.reserved_bytes:
            return Advice(
                slug="pending-free",
                fix_class="exact",
                title="Let other streams finish with freed tensors sooner",
                why=f"{format_bytes(instant.pending_free_bytes)} of {format_bytes(instant.reserved_bytes)} reserved were freed, "
                "but another stream had not passed them yet",
                rewrite="wait for the side stream before freeing, instead of Tensor.record_stream",
                effect="the bytes can be used again at once; the streams wait for each other at that place",
            )
    return None


def _simply_full(device: RecordedDevice) -> Advice | None:
    """Out of memory, and hardly any of it was wasted."""
    for failed, fragmentation in zip(device.report.oom, device.report.fragmentation.at_oom, strict=True):
        used = fragmentation.allocated_bytes + fragmentation.pending_free_bytes
        if failed.device_free_bytes < failed.request_bytes and used >= 0.9 * fragmentation.reserved_bytes > 0:
            share = format_percent(used / fragmentation.reserved_bytes, 2)
            return Advice(
                slug="not-fragmentation",
                fix_class="semantic",
                title="This is not fragmentation: less must be in use",
                why=f"{share} of {format_bytes(fragmentation.reserved_bytes)} reserved were in use when the "
                f"{format_bytes(failed.request_bytes)} request failed; no allocator setting helps",
                rewrite="a smaller batch with gradient accumulation, checkpointing, bf16, or a fused or 8-bit optimizer",
                effect="what held the memory when it failed is listed by line and category",
            )
    return None
