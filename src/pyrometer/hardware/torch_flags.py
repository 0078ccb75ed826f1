"""Settings that change speed: torch's flags, and the environment variables that configure its allocators and pools."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping
from typing import Any

# Only these variables are ever recorded, because their values are settings. torch itself sets CUDA_MODULE_LOADING when
# CUDA starts, so that one would tell two results apart that are alike.
RECORDED_VARIABLES = (
    "ATEN_CPU_CAPABILITY",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_LAUNCH_BLOCKING",
    "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "MKL_NUM_THREADS",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "OMP_PLACES",
    "OMP_PROC_BIND",
    "OMP_WAIT_POLICY",
    "ONEDNN_MAX_CPU_ISA",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
)

_FLAGS = (
    "cudnn.enabled",
    "cudnn.benchmark",
    "cudnn.deterministic",
    "cuda.matmul.allow_fp16_reduced_precision_reduction",
    "cuda.matmul.allow_bf16_reduced_precision_reduction",
    "cuda.flash_sdp_enabled",
    "cuda.mem_efficient_sdp_enabled",
    "cuda.math_sdp_enabled",
    "cuda.cudnn_sdp_enabled",
    "mkldnn.enabled",
)
# The precision of float32 is set per backend, and the older getters warn or raise once it has been.
_PRECISIONS = tuple(
    f"{backend}.fp32_precision"
    for backend in ("cuda.matmul", "cudnn.conv", "cudnn.rnn", "mkldnn.matmul", "mkldnn.conv", "mkldnn.rnn")
)


def read_settings(variables: Mapping[str, str]) -> dict[str, str]:
    """Torch's flags that change speed, and the recorded ones among these environment variables.

    Reading emits no warning and changes nothing. A flag that this version of torch does not have is left out, as is a
    variable that is not set.

    >>> settings = read_settings({"OMP_NUM_THREADS": "2", "API_KEY": "secret"})
    >>> settings["default_dtype"], settings["deterministic_algorithms"], settings["OMP_NUM_THREADS"]
    ('float32', 'off', '2')
    >>> "API_KEY" in settings
    False
    """
    import torch

    settings = {
        "anomaly_detection": _word(torch.is_anomaly_enabled()),
        "default_dtype": str(torch.get_default_dtype()).removeprefix("torch."),
        "deterministic_algorithms": ("off", "warn", "on")[torch.get_deterministic_debug_mode()],
        "flush_denormal": _word(denormals_flushed()),
    }
    names = _FLAGS + _PRECISIONS
    found = {name: flag for name in names if (flag := _flag(torch.backends, name)) is not None}
    recorded = {name: variables[name] for name in RECORDED_VARIABLES if name in variables}
    return {**settings, **found, **recorded}


def denormals_flushed() -> bool:
    """Whether this thread's arithmetic turns denormal numbers into zero; torch can set it and does not tell."""
    half = 2.0  # a variable, so that the division is not done when this file is compiled
    return sys.float_info.min / half == 0.0


def _flag(backends: Any, name: str) -> str | None:
    try:
        value: bool | str | Callable[[], bool] = operator.attrgetter(name)(backends)
    except AttributeError:
        return None
    return _word(value() if callable(value) else value)


def _word(value: bool | str) -> str:
    return value if isinstance(value, str) else ("on" if value else "off")
