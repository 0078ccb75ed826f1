"""What is known of a machine: its parts, versions and settings, and what else it was doing."""

from __future__ import annotations

from typing import Annotated

from pyrometer.quantity import Bytes
from pyrometer.record import Record, doc


class Cpu(Record, frozen=True, kw_only=True):
    """The processor."""

    model: str
    isa: Annotated[str, doc("highest vector extension that torch uses, such as AVX512")]
    physical_cores: int | None = None
    logical_cores: int
    usable_cpus: Annotated[float, doc("after affinity and cgroup limits")]
    numa_nodes: int | None = None
    signature: Annotated[
        str | None,
        doc("vendor, family, model and stepping; tells generations apart where a hypervisor hides the name"),
    ] = None
    l2_bytes: Annotated[Bytes | None, doc("second-level cache of one core")] = None
    l3_bytes: Annotated[Bytes | None, doc("third-level cache that the first core sees")] = None


class Gpu(Record, frozen=True, kw_only=True):
    """One accelerator."""

    name: str
    memory_bytes: Bytes
    capability: Annotated[str, doc("compute capability, such as 9.0")]
    multiprocessors: int
    driver: Annotated[str | None, doc("driver version; null without nvidia-ml-py")] = None


class Environment(Record, frozen=True, kw_only=True):
    """The machine, the versions and the settings that a result was taken on.

    Of the process's environment variables only those in `torch_flags.RECORDED_VARIABLES` are in it.
    """

    os: Annotated[str, doc("system and kernel release")]
    architecture: Annotated[str, doc("instruction set, such as x86_64")] = ""
    python: str
    pyrometer: str
    engine: Annotated[
        str, doc("what reads and walks traces: compiled, or Python and why it is not compiled")
    ] = ""
    torch: str
    torch_cuda: Annotated[str | None, doc("CUDA version that torch was built for")] = None
    torch_hip: Annotated[str | None, doc("ROCm version that torch was built for")] = None
    torch_git: Annotated[str | None, doc("commit that torch was built from")] = None
    cudnn: Annotated[int | None, doc("cuDNN version as an integer, such as 91002")] = None
    cpu: Cpu
    memory_bytes: Annotated[Bytes, doc("main memory, or the control group's limit where that is lower")]
    gpus: list[Gpu]
    threads: Annotated[int, doc("torch intra-op threads")]
    interop_threads: int
    settings: Annotated[dict[str, str], doc("torch flags and allocator settings that change speed")]
    fingerprint: Annotated[str, doc("hash of the fields that must match before two results are compared")] = (
        ""
    )


class Conditions(Record, frozen=True, kw_only=True):
    """The machine's state over one measurement; `None` where the platform does not say."""

    load_average: Annotated[float | None, doc("1-minute load average at the end")] = None
    logical_cpus: Annotated[int, doc("CPUs that this process may use")] = 1
    competing_load: Annotated[
        float | None, doc("mean number of those CPUs busy with other processes; null below 0.1 s")
    ] = None
    steal_share: Annotated[float | None, doc("share of CPU time that the hypervisor took, 0 to 1")] = None
    involuntary_switches_per_s: Annotated[
        float | None, doc("times per second that we were pushed off a CPU")
    ] = None
    frequency_ratio: Annotated[float | None, doc("CPU clock at the end over the start")] = None
    throttled: Annotated[bool | None, doc("whether a CPU or GPU thermal or power limit was active")] = None
    gpu_clock_ratio: Annotated[
        float | None, doc("lowest over highest SM clock seen while the GPU was not idle")
    ] = None
    gpu_temperature_c: Annotated[float | None, doc("highest temperature seen")] = None
    other_gpu_processes: Annotated[int | None, doc("other processes on the GPU")] = None
