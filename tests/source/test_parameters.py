"""What parameters without annotations are, by how they are used."""

from __future__ import annotations

import ast
import textwrap

import pytest

from pyrometer.source.module import Module
from pyrometer.source.value import BATCH, Kind

LAYER = """\
import torch
from torch import nn
import torch.nn.functional as F


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(8, 8)

    def _steps(self, sequence):
        return [sequence[:, t] for t in range(sequence.shape[1])]

    def forward(self, {signature}):
{body}
"""


def kind_of(signature: str, body: str, name: str) -> Kind:
    """The kind of a parameter where `forward` first reads it."""
    text = LAYER.format(signature=signature, body=textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8))
    module = Module.parse("net.py", text)
    forward = next(node for node in module.nodes(ast.FunctionDef) if node.name == "forward")
    reads = [node for node in ast.walk(forward) if isinstance(node, ast.Name) and node.id == name]
    return module.value_of(min(reads, key=lambda node: (node.lineno, node.col_offset))).kind


@pytest.mark.parametrize(
    ("signature", "body", "name"),
    [
        ("x", "return x.mean(1)", "x"),
        ("x, mask=None", "if mask is not None:\n    x = x * mask[:, 0].unsqueeze(-1)\nreturn x", "mask"),
        ("frames", "return [torch.tanh(frame.mean(0)) for frame in frames[:, 0]]", "frames"),
        ("tokens, lengths", "return torch.stack([row.sum(0) for row, n in zip(tokens, lengths)])", "tokens"),
        ("a, b", "return a.shape[0] + b @ a", "b"),
        ("signal", "return self._steps(signal)", "signal"),
        ("x", "return F.relu(x)", "x"),
    ],
)
def test_what_is_used_as_a_tensor_is_one(signature: str, body: str, name: str) -> None:
    assert kind_of(signature, body, name) is Kind.TENSOR


@pytest.mark.parametrize(
    ("signature", "body", "name"),
    [
        ("batch", "return self.mix(batch['image'])", "batch"),
        ("x, config", "return x * config.scale", "config"),
        ("x, steps", "for _ in range(steps):\n    x = x.sin()\nreturn x", "steps"),
        ("x, return_all", "if return_all:\n    return [x]\nreturn x", "return_all"),
        ("features", "return [torch.relu(level.mean(0)) for level in features]", "features"),
        ("x, h, w", "x = x.view(8, h, w)\npad = h % 2 == 1\nreturn x * h * w", "h"),
        ("x, mode", "return x if mode == 'train' else x.exp()", "mode"),
        ("parts", "return torch.cat(parts, 1)", "parts"),
        ("x", "if isinstance(x, (list, tuple)):\n    return x[0]\nreturn x", "x"),
        ("x, names", "return {name: x.sum() for name in names if name in names}", "names"),
    ],
)
def test_lists_dicts_flags_and_settings_are_not_taken_for_tensors(
    signature: str, body: str, name: str
) -> None:
    assert kind_of(signature, body, name) is not Kind.TENSOR


def test_a_helper_takes_what_the_layer_gives_it() -> None:
    text = LAYER.format(signature="signal", body="        return self._steps(signal)")
    module = Module.parse("net.py", text)
    read = next(
        node for node in module.nodes(ast.Name) if node.id == "sequence" and isinstance(node.ctx, ast.Load)
    )
    assert module.value_of(read).is_tensor


def test_a_step_of_lightning_takes_a_batch() -> None:
    text = """\
    import pytorch_lightning as pl

    class Task(pl.LightningModule):
        def training_step(self, batch, batch_idx):
            images, labels = batch
            return images.sum() * batch_idx
    """
    module = Module.parse("task.py", textwrap.dedent(text))
    values = {
        node.id: module.value_of(node) for node in module.nodes(ast.Name) if isinstance(node.ctx, ast.Load)
    }
    assert values["batch"].of == BATCH
    assert values["images"].is_tensor
    assert values["batch_idx"].kind is Kind.HOST
