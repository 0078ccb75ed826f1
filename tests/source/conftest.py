"""Snippets whose comments say what must be found on their lines."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from pyrometer.source.module import Module
from pyrometer.source.value import Value

HEADER = """
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader
"""


@pytest.fixture
def parse() -> Callable[..., Module]:
    """`parse(text, path="train.py")`: a module of a dedented text."""
    return lambda text, path="train.py": Module.parse(path, textwrap.dedent(text))


@pytest.fixture
def parse_torch(parse: Callable[..., Module]) -> Callable[..., Module]:
    """The same, below the usual imports."""
    return lambda text, path="train.py": parse(HEADER + textwrap.dedent(text), path)


@pytest.fixture
def expect(parse_torch: Callable[..., Module]) -> Callable[[str], None]:
    """Check every `reveal(x)  # TENSOR graph cpu` of a text against what `value_of(x)` says."""

    def check(text: str) -> None:
        module = parse_torch(text)
        said, wanted = {}, {}
        for call in module.nodes(ast.Call):
            if isinstance(call.func, ast.Name) and call.func.id == "reveal":
                said[call.lineno] = in_words(module.value_of(call.args[0]))
                wanted[call.lineno] = module.lines[call.lineno - 1].partition("#")[2].strip()
        assert wanted
        assert said == wanted

    return check


def in_words(value: Value) -> str:
    parts = [value.kind.name, "graph" if value.graph else "", value.device or ""]
    return " ".join(part for part in parts if part)


@pytest.fixture
def expect_lines(parse_torch: Callable[..., Module]) -> Callable[..., None]:
    """Check each line that ends in `# <mark>` of these marks, and that no other line has the property.

    `expect_lines(text, "hot", look)`: `look(module, call)` must hold for the calls of just the lines that end in `# hot`.
    """

    def check(text: str, mark: str, look: Callable[[Module, ast.Call], Any], path: str = "train.py") -> None:
        module = parse_torch(text, path)
        wanted = {number for number, line in enumerate(module.lines, 1) if re.search(rf"#.*\b{mark}\b", line)}
        calls = [
            call
            for call in module.nodes(ast.Call)
            if isinstance(call.func, ast.Name) and call.func.id == "here"
        ]
        assert calls
        assert {call.lineno for call in calls if look(module, call)} == wanted

    return check
