"""Whose code a file holds, by its path alone."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
import torch

import pyrometer
from pyrometer.source.ownership import owner_of

OWNERS = {
    "user": [
        "/home/me/project/model.py",
        "/home/me/torch/train.py",
        "/home/me/lib/models.py",
        "/home/me/lib/python3/train.py",
        "/home/me/python3.11/lib/train.py",
        "/home/me/editable/src/mylib/layers.py",
        "/home/me/site-packages-of-mine/train.py",
        "/home/me/app.zip/train.py",
        "/home/me/conda/train.py",
        "C:\\Users\\me\\train.py",
        "/tmp/ipykernel_77/123.py",
        "<ipython-input-3-1a2b>",
        "<python-input-0>",
        "<stdin>",
        "<string>",
        "<doctest pkg.mod[3]>",
        "/workspace/sglang/python/sglang/srt/layers/linear.py",
        "vllm/model_executor/layers/linear.py",
        "train.py",
        "test/profile.py",
        "enumeration.py",
        "torch_guard.py",
        __file__,
    ],
    "library": [
        "/venv/lib/python3.11/site-packages/transformers/modeling.py",
        "/home/me/project/.venv/lib/python3.11/site-packages/somelib/core.py",
        "/opt/conda/envs/x/lib/python3.10/site-packages/somelib/core.py",
        "/usr/lib/python3/dist-packages/yaml/reader.py",
        "/home/me/.local/lib/python3.11/site-packages/timm/layers.py",
        "/venv/lib/python3.11/site-packages/torchvision/ops/boxes.py",
        "C:\\venv\\Lib\\site-packages\\timm\\layers.py",
        "/venv/bin/pytest",
        "numpy/_core/fromnumeric.py",
        "tqdm/_monitor.py",
        "accelerate",
        pytest.__file__,
    ],
    "torch": [
        "C:\\venv\\Lib\\site-packages\\torch\\nn\\functional.py",
        "/src/pytorch/torch/_dynamo/polyfills/__init__.py",
        "/opt/pytorch/torch/nn/functional.py",
        "/env/torch/optim/adam.py",
        "/venv/lib/python3.11/site-packages/triton/runtime/jit.py",
        "torch/nn/modules/module.py",
        "triton/runtime/jit.py",
        "/venv/bin/torchrun",
        "torchrun",
        torch.__file__,
    ],
    "stdlib": [
        "/usr/lib/python3.11/contextlib.py",
        "/usr/local/lib/python3.13t/contextlib.py",
        "/home/me/miniconda3/lib/python3.11/json/decoder.py",
        "/home/me/.pyenv/versions/3.11.2/lib/python3.11/enum.py",
        "C:\\Python312\\Lib\\json\\decoder.py",
        "C:\\Users\\me\\miniconda3\\envs\\x\\Lib\\json\\decoder.py",
        "/usr/lib/python311.zip/enum.py",
        "<frozen runpy>",
        "enum.py",
        "logging/__init__.py",
        "typing_extensions.py",
        functools.__file__,
    ],
    "generated": [
        "/tmp/torchinductor_root/ab/cabc.py",
        "/home/me/run/torch_compile_debug/run_1/torchinductor/output_code.py",
        "<eval_with_key>.12",
        "<attrs generated init mod.Cls>",
        "<__array_function__ internals>",
    ],
    "ours": [
        "/venv/lib/python3.11/site-packages/pyrometer/bench/measure.py",
        "/home/me/pyrometer/src/pyrometer/bench/measure.py",
        "/venv/bin/pyrometer",
        "C:\\venv\\Scripts\\pyrometer.exe",
        "pyrometer/cli/main.py",
        "pyrometer",
        "/opt/tools/pyrometer/cli/main.py",
        "/home/me/checkout/pyrometer/trace/capture/workload.py",
        "/home/me/checkout/pyrometer/__main__.py",
        "/home/me/pyrometer-0.1.pyz/__main__.py",
        "pyrometer.pyz/pyrometer/cli/main.py",
        pyrometer.__file__,
    ],
}


@pytest.mark.parametrize(
    ("file", "owner"), [(file, owner) for owner, files in OWNERS.items() for file in files]
)
def test_whose_a_file_is(file: str, owner: str) -> None:
    assert owner_of(file) == owner


@pytest.mark.parametrize(
    ("function", "owner"),
    [("made", "user"), ("", "user"), ("__init__", "generated"), ("<lambda>", "generated")],
)
def test_whose_code_out_of_a_text_is(function: str, owner: str) -> None:
    assert owner_of("<string>", function) == owner
    assert owner_of("<ipython-input-3-abc>", function) == "user"


def test_a_folder_that_only_begins_like_a_librarys_is_the_users() -> None:
    beside = Path(torch.__file__).parents[2]
    assert owner_of(f"{beside}_of_mine/train.py") == "user"
