"""The machine, the versions and the settings that a result was taken on."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import msgspec

from pyrometer.hardware.cgroup import ROOT
from pyrometer.hardware.cpu import read_cpu, usable_memory_bytes
from pyrometer.hardware.fingerprint import fingerprint
from pyrometer.hardware.gpu import read_gpus
from pyrometer.hardware.record import Environment
from pyrometer.hardware.torch_flags import read_settings
from pyrometer.native import why_missing
from pyrometer.version import __version__


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
