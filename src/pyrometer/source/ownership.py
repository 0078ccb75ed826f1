"""Whose code a file holds, told by its path alone: stacks may come from other machines and systems, and from traces.

Code out of a text (`exec`, a notebook, a prompt) is the user's, save methods such as `__init__` in `<string>`: dataclasses make
these. So is an editable install, whose files the user can change. A relative path is one that torch's profiler cut: it
takes the entries of `sys.path` off, so that the standard library shows as `enum.py` and a package as `numpy/…`.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

Owner = Literal["user", "library", "torch", "stdlib", "generated", "ours"]
"""torch: also its compilers; generated: written by a program, such as the compiler's kernels; ours: Pyrometer's."""

_TEXT = re.compile(r"^<(?:ipython-input|python-input|stdin|string|doctest|console|input|cell|command)\b")
_MADE_METHOD = re.compile(r"__\w+__|<lambda>")
_PATTERNS: dict[Owner, re.Pattern[str]] = {
    "generated": re.compile(r"(?:^|/)(?:torchinductor_[^/]*|torch_compile_debug)/"),
    "ours": re.compile(
        r"/(?:site-packages|dist-packages|src)/pyrometer/|/_pyrometer_inside/|^pyrometer(?:/|\.py$|$)"
        r"|/(?:bin|Scripts)/pyrometer(?:-script\.py|\.exe)?$|(?:^|/)pyrometer[\w.-]*\.pyz/"
        r"|/pyrometer/(?:__init__|__main__|(?:bench|cli|compiler|dashboard|dataflow|evidence|guard|hardware|host|loading|memory|monitor|numerics|report"
        r"|rollout|rules|scaling|serving|source|store|trace|tuning|verbs|workload)/[\w/]+)\.py$"
    ),
    "torch": re.compile(
        r"(?:site|dist)-packages/(?:torch|functorch|torchgen|triton)/|/pytorch/torch/|/python/triton/"
        r"|/torch/(?:_\w+|amp|autograd|cuda|distributed|fx|jit|nn/(?:modules|parallel|utils)|optim|utils/(?:data|_\w+))/"
        r"|/torch/(?:_\w+|functional|overrides|nn/functional|utils/checkpoint)\.py$"
        r"|^(?:torch|functorch|torchgen|triton)(?:/|\.py$)|(?:^|/)torchrun(?:-script\.py|\.exe)?$"
    ),
    "library": re.compile(r"(?:^|/)(?:site|dist)-packages/|/(?:bin|Scripts)/pytest(?:-script\.py|\.exe)?$"),
    "stdlib": re.compile(
        r"/lib(?:64)?/python3\.\d+t?/|/Python3\d+t?/Lib/|/\w*(?:conda|mamba|forge)3?/(?:envs/[^/]+/)?Lib/"
        r"|/python3[.\d]*t?\.zip/"
    ),
}
"""In this order: packages lie within the standard library's folder, and torch among the packages."""
_OFTEN_USERS = frozenset({"chunk", "cmd", "code", "profile", "test", "trace"})
"""Names of the standard library that users often give to their own files."""
_STDLIB_NAMES = frozenset({*sys.stdlib_module_names, "typing_extensions"} - _OFTEN_USERS)
_LIBRARIES = """
    IPython PIL _pytest accelerate aiter albumentations apex bitsandbytes click cloudpickle csrc cv2
    datasets deepspeed diffusers dill einops execnet fairscale fbgemm_gpu flash_attn flashinfer fsspec
    huggingface_hub hydra ignite ipykernel joblib kornia lightning lightning_fabric lightning_utilities
    matplotlib mlflow mmcv mmengine monai msgspec numpy omegaconf open_clip pandas peft pluggy polars
    pyarrow pydantic pytest pytorch_lightning ray requests rich safetensors scipy sentence_transformers
    sgl_kernel sklearn tensorboard timm tokenizers torch_geometric torch_scatter torchao torchaudio
    torchdata torchmetrics torchrec torchtext torchvision tornado tqdm traitlets transformer_engine
    transformers trl urllib3 wandb xdist xformers yaml zmq
"""
"""Packages that traces often hold; programs such as serving engines are users."""
_LIBRARY_NAMES = frozenset(_LIBRARIES.split())


@lru_cache(maxsize=1 << 16)
def owner_of(file: str, function: str = "") -> Owner:
    """Whose code a function in a file is.

    >>> owner_of("/home/me/train.py"), owner_of("/venv/lib/python3.12/site-packages/timm/layers.py")
    ('user', 'library')
    >>> owner_of("torch/optim/sgd.py"), owner_of("/usr/lib/python3.12/json/encoder.py"), owner_of("<string>", "__init__")
    ('torch', 'stdlib', 'generated')
    """
    path = file.replace("\\", "/")
    if path.startswith("<"):
        return _owner_of_text(path, function)
    for owner, pattern in _PATTERNS.items():
        if pattern.search(path) or path.startswith(_folders().get(owner, ())):
            return owner
    first = path.partition("/")[0]
    return _owner_of_name(first.removesuffix(".py"), is_module=first != path or path.endswith(".py"))


def _owner_of_text(name: str, function: str) -> Owner:
    if name.startswith("<frozen "):
        return "stdlib"
    is_made = name == "<string>" and _MADE_METHOD.fullmatch(function)
    return "user" if _TEXT.match(name) and not is_made else "generated"


def _owner_of_name(name: str, *, is_module: bool) -> Owner:
    """Of a path that begins with the name of a module; scripts of libraries have no ending."""
    if name in _LIBRARY_NAMES:
        return "library"
    return "stdlib" if is_module and name in _STDLIB_NAMES else "user"


@cache
def _folders() -> dict[Owner, tuple[str, ...]]:
    """Where code is installed here."""
    torch = find_spec("torch")
    return {
        "ours": _prefixes([str(Path(__file__).parents[1])]),
        "torch": _prefixes((torch.submodule_search_locations if torch is not None else None) or ()),
        "library": _prefixes(sysconfig.get_path(name) for name in ("purelib", "platlib")),
        "stdlib": _prefixes(sysconfig.get_path(name) for name in ("stdlib", "platstdlib")),
    }


def _prefixes(folders: Iterable[str]) -> tuple[str, ...]:
    given = list(folders)
    return tuple({f"{Path(folder).as_posix()}/" for folder in (*given, *map(os.path.realpath, given))})
