"""torch's structured trace: the log that `TORCH_TRACE` writes and tlparse reads, taken from its logger in this process.

The logger `torch.__trace` exists since torch 2.2. Its records carry `metadata`, a dict whose one key that is not context
names the entry, and `payload`, text or nothing. What is written there is torch's contract with tlparse; single kinds of
entries come and go.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from typing import Any

LOGGER = "torch.__trace"

CONTEXT = frozenset(
    {
        "rank",
        "compiled_autograd_id",
        "frame_id",
        "frame_compile_id",
        "attempt",
        "has_payload",
        "stack",
        "subgraph_name",
    }
)
"""Keys of an entry's metadata that say where it belongs; the remaining one is its kind."""


def logger() -> logging.Logger | None:
    """Torch's trace logger; `None` where this torch has none."""
    structured = sys.modules.get("torch._logging.structured") or sys.modules.get("torch._logging._internal")
    return logging.getLogger(LOGGER) if structured is not None else None


def interned_files() -> dict[int, str]:
    """File names by the number that stands for them in stacks; each is logged once per process, perhaps before we came."""
    structured = sys.modules.get("torch._logging.structured")
    table: Mapping[str, int] = getattr(structured, "INTERN_TABLE", {})
    return {number: name for name, number in list(table.items())}


def counters() -> dict[str, int]:
    """Dynamo's counters as `group.name`; empty while nothing was compiled. They are never cleared by a reset."""
    groups: Any = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})
    return {
        f"{group}.{name}": int(count)
        for group, counts in list(groups.items())
        for name, count in list(counts.items())
        if isinstance(count, (int, float))
    }


def frames_compiled() -> tuple[int, int]:
    """Code objects that Dynamo compiled, and how often in all: each time beyond the first is a recompilation."""
    counts: Any = getattr(sys.modules.get("torch._dynamo.convert_frame"), "FRAME_COMPILE_COUNTER", {})
    compiled = list(counts.values())
    return sum(count > 0 for count in compiled), sum(compiled)


def current_compile_id() -> str | None:
    """The compilation that is under way on this thread, as torch writes it."""
    context: Any = getattr(sys.modules.get("torch._guards"), "CompileContext", None)
    found = context.current_compile_id() if context is not None else None
    return None if found is None else str(found)


def missing() -> list[str]:
    """What this torch does not have of this, in words."""
    return (
        [] if logger() is not None else ["torch's structured trace: this torch has no logger torch.__trace"]
    )
