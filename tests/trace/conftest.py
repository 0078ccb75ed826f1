"""A builder of small traces with a known truth, shared by the tests of this room."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.trace import RankTrace, Trace

REAL = Path(os.environ.get("PYROMETER_TRACES") or "../shared/traces")
LARGE_BYTES = 100_000
HOST_PID = 100
MAIN = 100


class TraceBuilder:
    """Writes events as Kineto does; all times in microseconds, which may have three decimals."""

    def __init__(self, folder: Path, *, base_ns: int | None = 1_700_000_000_000_000_000, **head: Any) -> None:
        self.folder = folder
        self.head: dict[str, Any] = {"schemaVersion": 1, "displayTimeUnit": "ms", **head}
        if base_ns is not None:
            self.head["baseTimeNanoseconds"] = base_ns
        self.events: list[dict[str, Any]] = []
        self._correlation = 0

    def add(
        self, cat: str, name: str, ts: float, dur: float, *, pid: Any = HOST_PID, tid: Any = MAIN, **args: Any
    ) -> None:
        """Any complete event."""
        self.events.append(
            {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}
        )

    def op(self, name: str, ts: float, dur: float, *, tid: int = MAIN, **args: Any) -> None:
        """A host operator."""
        self.add("cpu_op", name, ts, dur, tid=tid, **args)

    def annotate(self, name: str, ts: float, dur: float, *, tid: int = MAIN) -> None:
        """A user annotation, such as ProfilerStep#0."""
        self.add("user_annotation", name, ts, dur, tid=tid)

    def python(self, name: str, ts: float, dur: float, *, tid: int = MAIN, **args: Any) -> None:
        """A Python function: `file.py(12): name`."""
        self.add("python_function", name, ts, dur, tid=tid, **args)

    def call(self, name: str, ts: float, dur: float, *, tid: int = MAIN) -> int:
        """A runtime call; gives its correlation id."""
        self._correlation += 1
        self.add("cuda_runtime", name, ts, dur, tid=tid, correlation=self._correlation)
        return self._correlation

    def device(
        self, cat: str, name: str, ts: float, dur: float, *, stream: int = 7, device: int = 0, **args: Any
    ) -> None:
        """Work on a device: cat is kernel, gpu_memcpy or gpu_memset; pass correlation= to link it."""
        self.add(cat, name, ts, dur, pid=device, tid=stream, device=device, stream=stream, **args)

    def launch(
        self,
        name: str,
        at: float,
        start: float,
        dur: float,
        *,
        cat: str = "kernel",
        stream: int = 7,
        call_us: float = 5,
        tid: int = MAIN,
        **args: Any,
    ) -> int:
        """A launching call at `at` and its device work at `start`."""
        api = {
            "kernel": "cudaLaunchKernel",
            "gpu_memcpy": "cudaMemcpyAsync",
            "gpu_memset": "cudaMemsetAsync",
        }[cat]
        correlation = self.call(api, at, call_us, tid=tid)
        self.device(cat, name, start, dur, stream=stream, correlation=correlation, **args)
        return correlation

    def write(self, name: str = "trace.json") -> Path:
        """The file."""
        path = self.folder / name
        path.write_text(json.dumps({**self.head, "traceEvents": self.events}, indent=2), encoding="utf-8")
        return path

    def read(self, name: str = "trace.json") -> RankTrace:
        """Written and read back."""
        return self.read_all(name).ranks[0]

    def read_all(self, name: str = "trace.json") -> Trace:
        """The same, as a whole trace."""
        return read_trace(self.write(name))


@pytest.fixture(scope="session", autouse=True)
def own_trace_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Large files that tests read are cached in a folder of this session, not in the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYROMETER_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def builder(tmp_path: Path) -> TraceBuilder:
    """An empty trace to fill."""
    return TraceBuilder(tmp_path)


@pytest.fixture
def new_builder(tmp_path: Path) -> type[TraceBuilder]:
    """The builder's class, for tests that need several files: `new_builder(tmp_path, distributedInfo={...})`."""
    return TraceBuilder


@pytest.fixture(scope="session")
def real_traces() -> Path:
    """Folder of published traces, named by PYROMETER_TRACES; tests that want it are skipped where it is absent."""
    if not REAL.is_dir():
        pytest.skip("no folder of real traces; set PYROMETER_TRACES to one")
    return REAL


@pytest.fixture(
    scope="session",
    params=[
        pytest.param(
            path.name, marks=[pytest.mark.slow] if path.stat().st_size > LARGE_BYTES or number % 2 else []
        )
        for number, path in enumerate(sorted(REAL.glob("*.json.gz")))
    ]
    or [pytest.param("", id="none")],
)
def real_trace(request: pytest.FixtureRequest, real_traces: Path) -> Path:
    """Each of the published traces in turn; the large ones are slow, and so is every second."""
    return real_traces / str(request.param)


@pytest.fixture(scope="session")
def oracle() -> ModuleType:
    """The truth about a trace, computed apart from the library: `oracle.py` beside this file."""
    return _neighbour("oracle")


@pytest.fixture(scope="session")
def generated() -> ModuleType:
    """Strategies for random traces: `generated.py` beside this file."""
    return _neighbour("generated")


def _neighbour(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"trace_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
