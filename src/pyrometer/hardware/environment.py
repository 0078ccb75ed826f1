"""The machine, the versions and the settings that a result was taken on."""

from __future__ import annotations

import os
import platform
from typing import Annotated, Any

from pyrometer import __version__
from pyrometer.hardware.cpu import Cpu, memory_limit, read_cpu
from pyrometer.hardware.gpu import Gpu, read_gpus
from pyrometer.quantity import Bytes
from pyrometer.record import Record, doc

# The only environment variables that are ever recorded: they are settings, and they change speed.
RECORDED_VARIABLES = (
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "MALLOC_CONF",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OMP_PROC_BIND",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
)


class Environment(Record, frozen=True, kw_only=True):
    """The machine, the versions and the settings that a result was taken on."""

    os: str
    python: str
    pyrometer: str
    torch: str
    torch_cuda: Annotated[str | None, doc("CUDA version of the torch build")]
    torch_git: str | None
    cpu: Cpu
    memory_bytes: Annotated[Bytes, doc("memory that the process may use")]
    gpus: list[Gpu]
    threads: Annotated[int, doc("torch intra-op threads")]
    interop_threads: int
    settings: Annotated[dict[str, str], doc("torch flags and allocator settings that change speed")]
    fingerprint: Annotated[str, doc("hash of the fields that must match before two results are compared")] = (
        ""
    )


def read_environment() -> Environment:
    """Read the environment of this process."""
    import msgspec
    import torch

    from pyrometer.hardware.fingerprint import fingerprint

    found = Environment(
        os=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
        pyrometer=__version__,
        torch=str(torch.__version__),
        torch_cuda=torch.version.cuda,
        torch_git=torch.version.git_version,
        cpu=read_cpu(torch.backends.cpu.get_cpu_capability()),
        memory_bytes=memory_limit(),
        gpus=read_gpus(),
        threads=torch.get_num_threads(),
        interop_threads=torch.get_num_interop_threads(),
        settings=read_settings(),
    )
    return msgspec.structs.replace(found, fingerprint=fingerprint(found))


def read_settings() -> dict[str, str]:
    """Flags of torch that change speed, and the recorded environment variables that are set."""
    import torch

    flags: dict[str, Any] = {
        "default_dtype": str(torch.get_default_dtype()).removeprefix("torch."),
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "mkldnn": torch.backends.mkldnn.enabled,
        "float32_matmul_precision": _matmul_precision(),
    }
    if torch.cuda.is_available():
        flags["cudnn_benchmark"] = torch.backends.cudnn.benchmark
        flags["cudnn_deterministic"] = torch.backends.cudnn.deterministic
    variables = {name: os.environ[name] for name in RECORDED_VARIABLES if name in os.environ}
    return {name: str(value).lower() for name, value in flags.items()} | variables


def _matmul_precision() -> str:
    """Precision of float32 products; newer releases refuse to say it in one word once it was set per backend."""
    import torch

    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:
        return "set per backend"
