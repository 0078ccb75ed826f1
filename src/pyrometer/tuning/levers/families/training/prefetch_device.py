"""`prefetch_device`: batches that lie on the GPU before they are asked for."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch.utils import _pytree as pytree

from pyrometer.tuning.levers.batches import ahead, are_ahead, loader_of
from pyrometer.tuning.levers.lever import Lever, Parameters, lever
from pyrometer.tuning.levers.subject import Subject
from pyrometer.tuning.prefetch.prefetcher import streams_of


@lever
class PrefetchDevice(Lever):
    """Copy batches to the GPU on a stream of its own, ahead of their use."""

    name = "prefetch_device"
    title = "copy batches to the GPU ahead of their use"
    why = "Copies overlap with the step before. Nothing is won where the step does not wait for copies; two batches more lie on the device."
    stage = "device"
    place = "settings"
    kinds = frozenset({"training"})
    prior = 0.95

    def refuses(self, subject: Subject) -> str | None:
        """It takes a device with streams."""
        if streams_of(subject.device) is None:
            return f"the work is on {subject.device.type}: there is no copy to overlap"
        return "the batches are copied ahead already" if are_ahead(subject.training.batches) else None

    def choices(self, subject: Subject) -> list[Parameters]:
        """From page-locked memory, which it makes where the loader does not."""
        loader = loader_of(subject.training.batches)
        return [{"pin": loader is None or not loader.pin_memory}]

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Lay it around the batches."""
        work = subject.training
        work.batches = ahead(work.batches, subject.device, pin=parameters["pin"])

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """A batch that is handed out lies on the device."""
        batches = subject.training.batches
        if not are_ahead(batches):
            return "the batches are not copied ahead"
        iterator: Any = iter(batches)
        with contextlib.closing(iterator) as handed:
            tensors = [leaf for leaf in pytree.tree_leaves(next(handed)) if isinstance(leaf, torch.Tensor)]
        left = [tensor for tensor in tensors if tensor.device != subject.device]
        return f"{len(left)} tensors of a batch are still on {left[0].device}" if left else None

    def lines(self, parameters: Parameters) -> list[str]:
        """The wrapper."""
        pin = ", pin=True" if parameters.get("pin") else ""
        return [f"batches = pm.DevicePrefetcher(batches, device{pin})"]
