"""Names that mean something, in tables that are easy to extend; all else is decided by an event's kind.

Each function gives a Polars expression over `events`. A name that matches nothing keeps the meaning of its kind: an
unknown collective counts as compute, an unknown call as runtime.
"""

from __future__ import annotations

import sys

import polars as pl

from pyrometer.trace.kinds import Kind, is_kind

PHASE = "phase:"
"""Captured phases are annotations with this prefix: `phase:forward`."""

MODULE = "module:"
"""Captured modules are annotations with this prefix: `module:encoder.layers.0`."""

COMMUNICATION = (
    r"(?i)^nccl|ncclDevKernel|ncclKernel|^rccl|^hccl|^gloo:|^mscclpp|cross_device_reduce|multimem|nvshmem|deep_ep|deepep"
    r"|symm_mem|one_shot_all_reduce|two_shot_all_reduce|allreduce_fusion|quick_reduce|^c10d::|^_c10d_functional::"
)
"""Kernels that move data between devices: NCCL and its kin, and custom collectives of serving engines."""

HOST_COMMUNICATION = r"^(gloo|mpi|ucc):|^_c10d_functional::wait_tensor$|^c10d::monitored_barrier_$"
"""Collectives that a host thread runs or waits for: annotations of backends that work on the CPU, and waiting operators.

The operators `c10d::…` and `record_param_comms` only enqueue, and are not among them.
"""

BLOCKING = (
    r"^(cuda|hip|xpu|mtia)(Device|Stream|Event|Ctx)Synchronize|^cu(Ctx|Stream|Event)Synchronize|^hipMemcpyWithStream$"
    r"|^(cuda|hip)Memcpy$|^aten::(item|_local_scalar_dense)$|^(cuda|hip)Free$"
)
"""Calls in which the host waits for a device."""

STEP_MARK = r"^ProfilerStep[#*]?\s*\d+$"
"""What the profiler writes around each step."""

DATA_LOADING = r"enumerate\(DataLoader\)|DataLoader.*__next__|dataloader\.py\(\d+\): __next__|^phase:data$"
"""Annotations and functions in which a step waits for its data."""

_OFTEN_USERS = frozenset({"chunk", "cmd", "code", "profile", "test", "trace"})
_STANDARD = "|".join(sorted(sys.stdlib_module_names - _OFTEN_USERS))

CORE_FRAME = (
    r"^<(built-in|frozen|eval_with_key|__array_function__|attrs generated)|^<string>\(\d+\): (__\w+__|<lambda>)$|^nn\.Module: |^\.\.\."
    r"|^Python GC$|^(torch|functorch|torchgen|triton|pyrometer|click|typing_extensions)(/|\.py\()"
    r"|/(site|dist)-packages/(torch|functorch|torchgen|triton|pyrometer)/|/pytorch/torch/|/python/triton/"
    r"|/src/pyrometer/|/_pyrometer_inside/|^pyrometer\(\d+\): <module>$|(^|/)torchinductor_[^/]*/|(^|/)torch_compile_debug/"
    r"|/lib(64)?/python3[.\d]*/[\w/]+\.py\(|/lib(64)?/python3[.\d]*\.zip/"
    rf"|^({_STANDARD})(/|\.py\()|(^|/)torchrun\(\d+\): <module>$"
)
"""Python functions of Python itself, of torch and its compilers, of this tool and what starts it: never where a user would look.

The profiler cuts the entries of `sys.path` off, so that the standard library shows as `enum.py(…)` and a package as
`numpy/…`. Names of the standard library that users often give to their own files are not taken for it.
"""

LIBRARIES = (
    "IPython",
    "PIL",
    "_pytest",
    "accelerate",
    "aiter",
    "albumentations",
    "apex",
    "bitsandbytes",
    "cloudpickle",
    "csrc",
    "cv2",
    "datasets",
    "deepspeed",
    "diffusers",
    "dill",
    "einops",
    "fairscale",
    "fbgemm_gpu",
    "flash_attn",
    "flashinfer",
    "fsspec",
    "huggingface_hub",
    "hydra",
    "ignite",
    "ipykernel",
    "joblib",
    "kornia",
    "lightning",
    "lightning_fabric",
    "lightning_utilities",
    "matplotlib",
    "mlflow",
    "mmcv",
    "mmengine",
    "monai",
    "msgspec",
    "numpy",
    "omegaconf",
    "open_clip",
    "pandas",
    "peft",
    "pluggy",
    "polars",
    "pyarrow",
    "pydantic",
    "pytest",
    "pytorch_lightning",
    "ray",
    "requests",
    "rich",
    "safetensors",
    "scipy",
    "sentence_transformers",
    "sgl_kernel",
    "sklearn",
    "tensorboard",
    "timm",
    "tokenizers",
    "torch_geometric",
    "torch_scatter",
    "torchao",
    "torchaudio",
    "torchdata",
    "torchmetrics",
    "torchrec",
    "torchtext",
    "torchvision",
    "tornado",
    "tqdm",
    "traitlets",
    "transformer_engine",
    "transformers",
    "trl",
    "urllib3",
    "wandb",
    "xformers",
    "yaml",
    "zmq",
)
"""Packages whose functions are skipped where a user's own is above them; programs such as serving engines are users."""

LIBRARY_FRAME = rf"{CORE_FRAME}|/(site|dist)-packages/|^({'|'.join(LIBRARIES)})(/|\.py\(|\(\d+\): <module>$)"
"""Python functions of libraries: not where a user would look for a line to change."""

BACKWARD = r"^autograd::engine::evaluate_function"
"""Operators in which autograd runs one node of the backward pass."""


def is_communication() -> pl.Expr:
    """Kernels, and on the CPU operators, that exchange data between ranks."""
    return pl.col("name").str.contains(COMMUNICATION)


def is_host_communication() -> pl.Expr:
    """Annotations and operators during which a host thread runs a collective or waits for one."""
    return is_kind(Kind.USER_ANNOTATION, Kind.CPU_OP) & pl.col("name").str.contains(HOST_COMMUNICATION)


def is_blocking_call() -> pl.Expr:
    """Runtime and driver calls, or operators, in which the host waits for a device."""
    return pl.col("name").str.contains(BLOCKING)


def is_data_loading() -> pl.Expr:
    """Host events in which a step waits for its data."""
    return is_kind(Kind.USER_ANNOTATION, Kind.CPU_OP, Kind.PYTHON_FUNCTION) & pl.col("name").str.contains(
        DATA_LOADING
    )


def is_step_mark() -> pl.Expr:
    """The profiler's marks of steps: annotations, and in old files operators, that say nothing of what runs."""
    return pl.col("name").str.contains(STEP_MARK).fill_null(value=False)


def is_library_frame() -> pl.Expr:
    """Python functions outside the user's own code."""
    return pl.col("name").str.contains(LIBRARY_FRAME)


def frame_kinds(names: pl.Series) -> pl.DataFrame:
    """Each distinct function `name`, whether it `is_user`, and whether it `is_library` other than Python and torch.

    >>> frame_kinds(pl.Series(["numpy/linalg.py(3): norm", "enum.py(7): f", "net.py(9): forward"])).rows()
    [('numpy/linalg.py(3): norm', False, True), ('enum.py(7): f', False, False), ('net.py(9): forward', True, False)]
    """
    core = pl.col("name").str.contains(CORE_FRAME)
    return (
        names.unique(maintain_order=True)
        .drop_nulls()
        .to_frame("name")
        .select("name", is_user=~is_library_frame(), is_library=is_library_frame() & ~core)
    )


def is_module() -> pl.Expr:
    """Calls of an `nn.Module`, as the profiler's Python tracer or our own capture marks them."""
    return (
        (pl.col("kind") == Kind.PYTHON_FUNCTION.value) & pl.col("name").str.starts_with("nn.Module: ")
    ) | ((pl.col("kind") == Kind.USER_ANNOTATION.value) & pl.col("name").str.starts_with(MODULE))


def is_phase() -> pl.Expr:
    """Phases of a step, as our own capture marks them."""
    return (pl.col("kind") == Kind.USER_ANNOTATION.value) & pl.col("name").str.starts_with(PHASE)
