"""Buckets as a module, compiled at the first call."""

from __future__ import annotations

from typing import Any

from torch import nn

from pyrometer.tuning.shapes.buckets import ShapeBuckets


class Bucketed(nn.Module):
    """Buckets whose first call compiles all that the plan expects."""

    def __init__(self, buckets: ShapeBuckets) -> None:
        super().__init__()
        self.model = buckets.model
        self.buckets = buckets
        self._is_ready = False

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the bucket of the sizes."""
        if not self._is_ready:
            self.buckets.precompile(*args, **kwargs)
            self._is_ready = True
        return self.buckets(*args, **kwargs)
