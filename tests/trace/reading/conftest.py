"""Small trace files, written whole or damaged."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyrometer.trace.reading.load import Loaded, load

STYLES: dict[str, dict[str, Any]] = {
    "compact": {"separators": (",", ":")},
    "one line": {},
    "indented": {"indent": 2},
}


def make_events(count: int = 50) -> list[dict[str, Any]]:
    """Operators that start 10.125 µs apart and take 5.5 µs."""
    return [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": f"aten::op{i}",
            "pid": 1,
            "tid": 1,
            "ts": 100 + i * 10.125,
            "dur": 5.5,
            "args": {"External id": i, "Input Dims": [[2, 3], []], "Call stack": "a;b"},
        }
        for i in range(count)
    ]


def kineto_text(document: dict[str, Any]) -> str:
    """A document as Kineto writes one: an event is a block, its first keys share a line."""
    head = ",\n".join(f'  "{k}": {json.dumps(v)}' for k, v in document.items() if k != "traceEvents")
    events = []
    for event in document["traceEvents"]:
        keys = [f'"{k}": {json.dumps(v)}' for k, v in event.items()]
        events.append("  {\n    " + ", ".join(keys[:5]) + ",\n    " + ",\n    ".join(keys[5:]) + "\n  }")
    return "{\n" + head + ',\n  "traceEvents": [\n' + ",\n".join(events) + "\n  ]\n}\n"


class TraceText:
    """The text of a trace of operators, to be damaged and read."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "trace.json"

    def good(self, style: str = "one line", count: int = 50, **head: Any) -> bytes:
        """A sound file: rank 2 of 4, keys before and after the events."""
        document = {
            "schemaVersion": 1,
            "distributedInfo": {"rank": 2, "world_size": 4, "backend": "nccl"},
            "traceEvents": make_events(count),
            "traceName": "x",
            "baseTimeNanoseconds": 5,
            **head,
        }
        text = kineto_text(document) if style == "kineto" else json.dumps(document, **STYLES[style])
        return text.encode()

    def load(self, text: bytes, **options: Any) -> Loaded:
        """Written and read, past any cache."""
        self.path.write_bytes(text)
        return load(self.path, **options)

    def load_gzip(self, packed: bytes) -> Loaded:
        """The same, packed already."""
        path = self.path.with_suffix(".json.gz")
        path.write_bytes(packed)
        return load(path)


@pytest.fixture
def text(tmp_path: Path) -> TraceText:
    """Texts of traces."""
    return TraceText(tmp_path)


@pytest.fixture
def pack() -> Callable[[bytes], bytes]:
    """Gzip."""
    return gzip.compress


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> TraceText:
    """The same for property tests, which may not use a fixture of a single test."""
    return TraceText(tmp_path_factory.mktemp("texts"))
