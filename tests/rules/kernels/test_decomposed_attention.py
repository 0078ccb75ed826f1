"""PYR510: attention that is written out, in text and in a trace."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from pyrometer.workload.inference import Inference

CODE = "PYR510"


@pytest.mark.parametrize(
    "body",
    [
        "return torch.softmax(q @ k.transpose(-2, -1) / 8, dim=-1) @ v  # <-",
        "s = torch.matmul(q, k.transpose(-1, -2)) * self.scale\np = functional.softmax(s, dim=-1)  # <-\nreturn torch.matmul(p, v)",
        "s = q @ k.mT\ns = s.masked_fill(x == 0, float('-inf'))\na = s.softmax(-1)  # <-\na = self.dropout(a)\nreturn a @ v",
        "a = torch.einsum('bhqd,bhkd->bhqk', q, k).softmax(dim=-1)  # <-\nreturn torch.einsum('bhqk,bhkd->bhqd', a, v)",
        "a = torch.bmm(q, k.permute(0, 2, 1))\na = self.softmax(a + x)  # <-\nreturn torch.bmm(a, v)",
        "k = k.view(2, 4, 8, 16).permute(0, 2, 3, 1)\na = functional.softmax(q @ k, -1)  # <-\nreturn a.to(v.dtype) @ v",
    ],
)
def test_finds_attention_that_is_written_out(fires: Any, body: str) -> None:
    fires(CODE, body)


@pytest.mark.parametrize(
    "body",
    [
        "return functional.scaled_dot_product_attention(q, k, v)",
        "a = torch.softmax(q @ k.transpose(-2, -1), -1)\nreturn a @ v, a",  # the weights are wanted
        "a = torch.softmax(q @ k.transpose(-2, -1), -1)\nself.seen = a\nreturn a @ v",
        "return torch.softmax(self.linear(x), -1) @ v",
        # both sides look at each other by the same scores
        "s = q @ k.transpose(-2, -1)\na = torch.softmax(s, -1) @ v\nb = torch.softmax(s, -1) @ x\nreturn a, b",
        # channels look at channels
        "q = self.linear(x).transpose(-2, -1)\nreturn torch.softmax(q @ k.transpose(-2, -1), -1) @ v",
        "q = rearrange(x, 'b (n c) h w -> b n c (h w)', n=4)\nreturn torch.softmax(q @ k.transpose(-2, -1), -1) @ v",
        "return torch.softmax(q @ self.weight, -1) @ v",  # no keys
        "return torch.softmax(q @ k.transpose(-2, -1), -1)",
        "return torch.softmax(q @ k.transpose(-2, -1), dim=0) @ v",
        "return v @ torch.softmax(q @ k.transpose(-2, -1), -1)",
        (
            "a = torch.softmax(torch.einsum('b i d, b j d -> b i j', q, k), -1)\n"
            "a = torch.einsum('h i j, h g -> g i j', a, self.weight)\nreturn torch.einsum('b i j, b j d -> b i d', a, v)"
        ),  # mixed before they are used
    ],
)
def test_is_silent_where_it_is_something_else(silent: Any, body: str) -> None:
    silent(CODE, body)


def test_a_function_beside_the_fused_one_is_written_out_on_purpose(silent: Any) -> None:
    eager = "import torch\n\ndef eager_attention(q, k, v):\n    return torch.softmax(q @ k.transpose(-2, -1), -1) @ v\n"
    silent(CODE, eager)


class Attention(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        weights = torch.softmax(scores, dim=-1)
        return weights @ v


INPUTS = tuple(torch.randn(1, 4, 256, 32) for _ in range(3))


def test_a_real_program_is_told_the_line_and_the_time(
    observe: Any, only: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # This file speaks of the fused operator, which counts as a reason for the written one.
    from pyrometer.rules.kernels.patterns import attention_pattern

    monkeypatch.setattr(attention_pattern, "FUSED", re.compile("(?!)"))
    finding = only(CODE, observe(Inference(Attention(), INPUTS), "trace", sources=[Path(__file__)]))
    assert finding.where.line == Attention.forward.__code__.co_firstlineno + 2
    assert finding.advice.rewrite == "return functional.scaled_dot_product_attention(q, k, v)"
    assert finding.cost.share > 0.1
    assert finding.advice.gain.ratio_low < finding.advice.gain.ratio_high < 1


MASKED = """\
import torch

def forward(q, k, v, mask):
    scores = (q @ k.transpose(-2, -1)).masked_fill(mask, float("-inf"))
    return torch.softmax(scores, dim=-1) @ v
"""


def test_the_copy_that_masking_makes_is_a_part(
    trace_tests: Any, tmp_path: Path, traced: Any, only: Any
) -> None:
    builder = trace_tests.TraceBuilder(tmp_path)
    for i in range(3):
        start = i * 1000
        builder.annotate(f"ProfilerStep#{i}", start, 1000)
        builder.python("train.py(3): forward", start, 995)
        builder.op("aten::bmm", start + 10, 200)
        builder.op("aten::masked_fill", start + 220, 400)
        builder.op("aten::copy_", start + 230, 200)
        builder.op("aten::masked_fill_", start + 440, 170)
        builder.op("aten::softmax", start + 640, 200)
    finding = only(CODE, traced(builder, MASKED))
    assert finding.cost.share == pytest.approx(0.8, abs=0.01)


def test_the_fused_operator_gives_the_same_without_the_weights() -> None:
    written, fused = Attention()(*INPUTS), functional.scaled_dot_product_attention(*INPUTS)
    torch.testing.assert_close(fused, written, rtol=1e-4, atol=1e-5)
    largest = []
    for run in (lambda: Attention()(*INPUTS), lambda: functional.scaled_dot_product_attention(*INPUTS)):
        with torch.profiler.profile(profile_memory=True) as seen:
            run()
        largest.append(max(event.self_cpu_memory_usage for event in seen.key_averages()))
    assert largest[0] >= 4 * 4 * 256 * 256
    assert largest[0] > 2 * largest[1]
