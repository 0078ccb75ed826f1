"""Names of Python functions, `train.py(12): step`: their parts, and whose code they are."""

from __future__ import annotations

import sys

import polars as pl

FRAME = r"^(?P<file>.*)\((?P<line>\d+)\): (?P<function>.*)$"
"""File, the line at which the function begins, and its name."""

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


def frame_parts(names: pl.Series) -> pl.DataFrame:
    """`file, line, function` of each name; null where it is no function of a file.

    >>> frame_parts(pl.Series(["train.py(12): step", "aten::mm"])).rows()
    [('train.py', 12, 'step'), (None, None, None)]
    """
    parsed = names.to_frame("frame").select(pl.col("frame").str.extract_groups(FRAME).struct.unnest())
    return parsed.with_columns(pl.col("line").cast(pl.Int64, strict=False))


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
