"""Records what torch says while it compiles a small model: `python record_logs.py OUT.json.gz`.

Run twice with one fresh TORCHINDUCTOR_CACHE_DIR it records a cold and a warm compilation. The recorded files beside this
one were made that way; what the readers do not use, and every path of the machine, was left out.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pyrometer.compiler.collecting.collector import collect
from pyrometer.compiler.log import CompileLog, LogEntry

UNREAD = (
    "describe_",
    "aot_",
    "before_",
    "after_",
    "fx_graph_runnable",
    "inductor_post_grad",
    "dynamo_cpp_guards",
)
"""Kinds of entries, by their first letters, that are left out."""

READ = (
    "inductor_output_code",
    "inductor_provenance_tracking_node_mappings",
    "inductor_provenance_tracking_kernel_stack_traces",
)
"""Kinds of entries whose payload is kept as it is."""

LARGE = 2000
"""Longer texts in metrics and events (settings, components that the artifacts hold too) are left out."""


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.up = nn.Linear(16, 32)
        self.down = nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = nn.functional.gelu(self.up(self.norm(x)))
        return x + self.down(hidden)


def main(out: Path) -> None:
    import torch._inductor.config as inductor

    inductor.trace.provenance_tracking_level = 1
    torch.manual_seed(0)
    model = Model()
    with collect() as collector:
        compiled = torch.compile(model)
        for batch in (4, 6):  # the second size compiles again
            compiled(torch.randn(batch, 16)).sum().backward()
        log = collector.log()
    import torch._dynamo.utils as dynamo

    told = {
        "calculate_time_spent": dynamo.calculate_time_spent(),
        "compilation_time_metrics": {name: sum(s) for name, s in dynamo.compilation_time_metrics.items()},
        "counters": log.counters,
    }
    text = json.dumps(
        {"entries": [plain(entry) for entry in kept(log)], "torch": log.torch_version, **told}, default=repr
    )
    for path, name in places():
        text = text.replace(path, name)
    out.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def kept(log: CompileLog) -> list[LogEntry]:
    return [entry for entry in log.entries if not entry.kind.startswith(UNREAD)]


def plain(entry: LogEntry) -> dict[str, Any]:
    payload = entry.payload
    if entry.kind == "chromium_event":
        event = json.loads(payload)
        event["args"] = shortened(event.get("args") or {})
        payload = json.dumps(event)
    elif "cache_" in entry.kind:
        payload = shortened_key(payload)
    elif entry.kind not in READ:
        payload = ""
    metadata = shortened(entry.metadata) if isinstance(entry.metadata, dict) else entry.metadata
    return {
        "kind": entry.kind,
        "metadata": metadata,
        "payload": payload,
        "compile_id": entry.compile_id,
        "attempt": entry.attempt,
        "time_ns": entry.time_ns,
        "thread": entry.thread,
    }


def shortened_key(payload: str) -> str:
    """The key with shorter hashes and a few of the 600 settings."""
    document = json.loads(payload)
    parts = [re.sub(r"^\[(\w{10})\w+\]", r"[\1]", part) for part in document.get("components") or []]
    document["components"] = [
        part
        for part in parts
        if "inductor_config" not in part or re.search(r"\[(?:\w?a|triton.cudagraphs)", part)
    ]
    return json.dumps(document)


def shortened(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if len(str(value)) < LARGE and name != "stack_trace"}


def places() -> list[tuple[str, str]]:
    """Paths of this machine and what stands for them, the longest first."""
    found = {
        os.environ.get("TORCHINDUCTOR_CACHE_DIR", ""): "/cache",
        str(Path(__file__).resolve().parent): "/project",
        str(Path(torch.__file__).resolve().parents[1]): "/site-packages",
        sys.prefix: "/python",
    }
    return sorted(((path, name) for path, name in found.items() if path), key=lambda place: -len(place[0]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
