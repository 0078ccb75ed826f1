"""What a call or an operation spends time on."""

from __future__ import annotations

import ast

import pytest

from pyrometer.host.leaves import Leaf, LeafReader
from pyrometer.host.library_names import Library, kind_of_library
from pyrometer.source.module import Module

IMPORTS = """\
import gc, json, logging, os, pickle, random, re, subprocess, threading, time
import numpy as np
import torch
from os import fsync as settle
from torch import save as keep
from copy import deepcopy
"""


def leaf_of(code: str, types: dict[str, str] | None = None, **more) -> Leaf:
    module = Module.parse("a.py", IMPORTS + code)
    statement = module.tree.body[-1]
    assert isinstance(statement, ast.Expr)
    return LeafReader(module, types or {}).leaf(statement.value, **more)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("settle(3)", "fsync"),
        ("os.fdatasync(3)", "fsync"),
        ("os.replace('a', 'b')", "file"),
        ("keep({}, 'a.pt')", "torch.save"),
        ("re.sub('a', 'b', 'c')", "regex"),
        ("json.loads('1')", "json"),
        ("logging.info('x')", "logging"),
        ("pickle.dumps(1)", "pickle"),
        ("deepcopy([])", "copy"),
        ("time.sleep(1)", "sleep"),
        ("subprocess.run(['a'])", "process"),
        ("random.random()", "random"),
        ("np.random.rand()", "random"),
        ("np.dot(1, 2)", "numpy"),
        ("gc.collect()", "garbage"),
        ("print('x')", "print"),
        ("open('x').read()", "file"),
        ("torch.zeros(3)", "allocation"),
        ("self.trace.addr_(a, b)", "operator"),
        ("self.trace.forget_(a)", "python"),
        ("torch.relu(x)", "operator"),
        ("torch.relu(x).item()", "synchronisation"),
        ("torch.cuda.synchronize()", "synchronisation"),
        ("sorted([])", "python"),
        ("mine(3)", "python"),
        ("x.append(3)", "python"),
        ("x.item()", "synchronisation"),
        ("loss.backward()", "backward"),
        ("text.split()", "python"),
        ("x + 1", "python"),
    ],
)
def test_what_the_text_says(code, kind):
    assert leaf_of(code).kind == kind


@pytest.mark.parametrize(
    ("code", "types", "expected"),
    [
        ("words.sub('', 'a')", {"words": "re.Pattern"}, Leaf("regex", "Pattern.sub")),
        ("x.sub(1)", {"x": "torch.Tensor"}, Leaf("operator", "Tensor.sub")),
        ("x.item()", {"x": "numpy.generic"}, Leaf("numpy", "generic.item")),
        ("self.guard.acquire()", {"self.guard": "_thread.lock"}, Leaf("lock", "lock.acquire")),
        ("log.info('x')", {"log": "logging.Logger"}, Leaf("logging", "Logger.info")),
        ("out.write('x')", {"out": "_io.TextIOWrapper"}, Leaf("file", "file.write")),
        ("rows.copy()", {"rows": "builtins.list"}, Leaf("python", "list.copy")),
        ("a @ b", {"a": "torch.Tensor"}, Leaf("operator", "@")),
        ("a[0]", {"a": "numpy.ndarray"}, Leaf("numpy", "[]")),
        ("a[0] + 1", {"a": "torch.Tensor"}, Leaf("operator", "+")),
        ("a + 1", {"a": "builtins.int"}, Leaf("python", "python")),
    ],
)
def test_types_that_were_seen_decide(code, types, expected):
    assert leaf_of(code, types) == expected


def test_a_slow_operation_on_what_is_not_known_is_no_work_of_python_itself():
    assert leaf_of("a + b", is_slow=True) == Leaf("operator", "+")
    assert leaf_of("a + b", {"a": "builtins.list"}, is_slow=True).kind == "python"


def test_a_loop_is_told_by_what_it_walks_over():
    assert leaf_of("words", {"words": "torch.Tensor"}, operation="FOR_ITER") == Leaf("operator", "iteration")
    assert leaf_of("re.finditer('a', 'b')", operation="FOR_ITER").kind == "regex"


def test_entering_a_lock_is_waiting_for_it():
    assert leaf_of("self.guard", {"self.guard": "_thread.lock"}, operation="BEFORE_WITH").kind == "lock"


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        (["json/encoder.py"], "json"),
        (["pickle.py", "site-packages/torch/serialization.py"], "torch.save"),
        (["io.py", "logging/__init__.py"], "logging"),
        (["site-packages/torch/utils/data/dataloader.py"], "data"),
        (["site-packages/torch/nn/modules/linear.py"], "operator"),
        (["site-packages/numpy/core/fromnumeric.py"], "numpy"),
        (["site-packages/tokenizers/models.py"], "library"),
        (["threading.py"], "lock"),
    ],
)
def test_libraries_are_told_by_the_outermost_with_a_kind(files, kind):
    frames = [Library(f"/usr/lib/python3.12/{file}", "call") for file in files]
    assert kind_of_library(frames) == kind


def test_a_call_into_a_library_keeps_the_name_that_the_user_wrote():
    above = [Library("/usr/lib/python3.12/json/encoder.py", "JSONEncoder.encode")]
    assert leaf_of("json.dumps({})", above=above) == Leaf("json", "json.dumps")
    assert leaf_of("mine({})", above=above) == Leaf("json", "mine")


def test_an_operator_that_a_library_wraps_is_told_by_its_sign():
    wrapper = Library("/venv/torch/_tensor.py", "_handle_torch_function_and_wrap.<locals>.wrapped")
    assert leaf_of("x ** 2", {"x": "torch.Tensor"}, above=[wrapper]).name == "**"


def test_the_text_of_a_tensor_is_printing_wherever_it_is_made() -> None:
    frames = [
        Library("/venv/torch/_tensor_str.py", "_str_intern"),
        Library("/venv/torch/_tensor_str.py", "_str"),
        Library("/venv/torch/_tensor.py", "Tensor.__format__"),
    ]
    assert leaf_of("x", above=frames) == Leaf("print", "text of a tensor")
    assert (
        kind_of_library([*frames, Library("/usr/lib/python3.12/logging/__init__.py", "debug")]) == "logging"
    )
