"""The machine and the settings that a result was taken on."""

from __future__ import annotations

from typing import Annotated

from pyrometer.record import Record, doc


class Cpu(Record, frozen=True, kw_only=True):
    """The processor."""

    model: str
    isa: Annotated[str, doc("highest vector extension that torch uses, such as AVX512")]
    physical_cores: int | None
    logical_cores: int
    usable_cpus: Annotated[float, doc("after affinity and cgroup limits")]
    numa_nodes: int | None


class Gpu(Record, frozen=True, kw_only=True):
    """One accelerator."""

    name: str
    memory_bytes: int
    capability: Annotated[str, doc("compute capability, such as 9.0")]
    multiprocessors: int
    driver: str | None


class Environment(Record, frozen=True, kw_only=True):
    """The machine, the versions and the settings that a result was taken on. Holds no environment values."""

    os: str
    python: str
    pyrometer: str
    torch: str
    torch_cuda: str | None
    torch_git: str | None
    cpu: Cpu
    memory_bytes: int
    gpus: list[Gpu]
    threads: Annotated[int, doc("torch intra-op threads")]
    interop_threads: int
    settings: Annotated[dict[str, str], doc("torch flags and allocator settings that change speed")]
    fingerprint: Annotated[str, doc("hash of the fields that must match before two results are compared")]


def read_environment() -> Environment:
    """Read the environment."""
    raise AssertionError
