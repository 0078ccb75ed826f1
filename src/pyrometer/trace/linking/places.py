"""Where in the user's program an event belongs: source line, module, phase; backward work through its forward operator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.trace.kinds import Kind
from pyrometer.trace.linking.backward import forward_of
from pyrometer.trace.linking.nearest import IntArray, nearest
from pyrometer.trace.patterns import is_library_frame, is_module, is_phase


@dataclass(frozen=True)
class Places:
    """Rows of `events`, one per event; -1 where nothing is known."""

    frame: IntArray  # innermost Python function in the user's own code
    module: IntArray  # innermost nn.Module call
    phase: IntArray  # innermost phase annotation
    forward: IntArray  # the forward operator behind a backward one, and behind what that runs


def find_places(events: pl.DataFrame, ops: pl.DataFrame) -> Places:
    """Find the places of all events of one rank; `events` is linked."""
    parent = events["parent"].cast(pl.Int64).fill_null(-1).to_numpy()
    depth = events["depth"].to_numpy().astype(np.int64)
    masks = events.select(
        frame=(pl.col("kind") == Kind.PYTHON_FUNCTION.value) & ~is_library_frame(),
        module=is_module(),
        phase=is_phase(),
    )
    direct = forward_of(ops, events["start_ns"].to_numpy())
    source = nearest(parent, depth, direct >= 0)
    forward = np.where(source >= 0, direct[source], -1)

    def place(name: str) -> npt.NDArray[np.int64]:
        found = nearest(parent, depth, masks[name].fill_null(value=False).to_numpy())
        return np.where((found < 0) & (forward >= 0), found[forward], found)

    phase = nearest(parent, depth, masks["phase"].fill_null(value=False).to_numpy())
    return Places(place("frame"), place("module"), phase, forward)
