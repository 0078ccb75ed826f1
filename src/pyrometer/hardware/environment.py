"""The machine, the versions and the settings that a result was taken on."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Annotated, Any

import msgspec

from pyrometer.hardware.cgroup import ROOT
from pyrometer.hardware.cpu import Cpu, read_cpu, usable_memory_bytes
from pyrometer.hardware.fingerprint import fingerprint
from pyrometer.hardware.gpu import Gpu, read_gpus
from pyrometer.hardware.torch_flags import read_settings
from pyrometer.native import why_missing
from pyrometer.quantity import Bytes
from pyrometer.record import Record, doc
from pyrometer.version import __version__

__all__ = ["Cpu", "Environment", "Gpu", "read_environment"]


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


def read_environment(root: Path = ROOT) -> Environment:
    """Read the machine, versions and settings as they are now, in this process; `root` stands in for `/`.

    Changes nothing: CUDA is not initialised where torch sees no GPU, and no context is created where it sees one.

    >>> environment = read_environment()
    >>> environment.cpu.usable_cpus <= environment.cpu.logical_cores, len(environment.fingerprint)
    (True, 12)
    """
    import torch

    cudnn: Any = torch.backends.cudnn  # untyped in torch
    unsigned = Environment(
        os=f"{platform.system()} {platform.release()}",
        architecture=platform.machine(),
        python=platform.python_version(),
        pyrometer=__version__,
        engine=f"Python: {why}" if (why := why_missing()) else "compiled",
        torch=str(torch.__version__),
        torch_cuda=torch.version.cuda,
        torch_hip=torch.version.hip,
        torch_git=torch.version.git_version,
        cudnn=cudnn.version(),
        cpu=read_cpu(root),
        memory_bytes=usable_memory_bytes(root),
        gpus=read_gpus(),
        threads=torch.get_num_threads(),
        interop_threads=torch.get_num_interop_threads(),
        settings=read_settings(os.environ),
    )
    return msgspec.structs.replace(unsigned, fingerprint=fingerprint(unsigned))
