"""Operators of inference engines against figures worked out by hand; schemas are those of vLLM, sgl-kernel, SGLang and aiter."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from pyrometer.trace.analysis.roofline import roofline
from pyrometer.trace.costs.call import NotRecordedError
from pyrometer.trace.costs.registry import cost_of
from pyrometer.trace.naming.engine_names import read_step

BF16 = {"dtype": torch.bfloat16, "device": "meta"}


def half(*shape):
    return torch.empty(*shape, **BF16)


def narrow(*shape):
    return torch.empty(*shape, dtype=torch.uint8, device="meta")


def ids(*shape):
    return torch.empty(*shape, dtype=torch.int32, device="meta")


def within(call, annotation):
    """The same call in a step of an engine."""
    return dataclasses.replace(call, serving=read_step(annotation))


X, R, W, OUT = half(4, 8), half(4, 8), half(8), half(4, 8)  # 32 elements of two bytes; a weight of 16 bytes


@pytest.mark.parametrize(
    ("name", "arguments", "flop", "read", "written"),
    [
        ("_C::rms_norm", (OUT, X, W, 1e-6), 4 * 32, 64 + 16, 64),
        ("sgl_kernel::rmsnorm", (OUT, X, W, 1e-6, False), 4 * 32, 64 + 16, 64),
        ("sgl_kernel::gemma_rmsnorm", (OUT, X, W, 1e-6, False), 4 * 32, 64 + 16, 64),
        ("aiter::rmsnorm", (OUT, X, W, 1e-6), 4 * 32, 64 + 16, 64),
        ("aiter::rms_norm", (X, W, 1e-6), 4 * 32, 64 + 16, 64),
        ("_C::rms_norm_static_fp8_quant", (narrow(4, 8), X, W, half(1), 1e-6), 5 * 32, 64 + 16, 32),
        ("_C::fused_add_rms_norm", (X, R, W, 1e-6), 5 * 32, 128 + 16, 128),
        ("sgl_kernel::fused_add_rmsnorm", (X, R, W, 1e-6, False), 5 * 32, 128 + 16, 128),
        ("aiter::add_rmsnorm", (OUT, X, R, R, W, 1e-6), 5 * 32, 128 + 16, 128),
        ("aiter::rmsnorm2d_fwd_with_add", (OUT, X, R, R, W, 1e-6), 5 * 32, 128 + 16, 128),
        (
            "_C::fused_add_rms_norm_static_fp8_quant",
            (narrow(4, 8), X, R, W, half(1), 1e-6),
            6 * 32,
            128 + 16,
            32 + 64,
        ),
        ("_C::silu_and_mul", (half(4, 4), X), 6 * 16, 64, 32),
        ("sgl_kernel::gelu_and_mul", (half(4, 4), X), 6 * 16, 64, 32),
        ("aiter::gelu_tanh_and_mul", (half(4, 4), X), 6 * 16, 64, 32),
        ("_C::silu_and_mul_quant", (narrow(4, 4), X, half(1)), 7 * 16, 64, 16),
        ("_C::gelu_new", (OUT, X), 5 * 32, 64, 64),
        ("_C::static_scaled_fp8_quant", (narrow(4, 8), X, half(1)), 2 * 32, 64, 32),
        ("sgl_kernel::sgl_per_token_quant_fp8", (X, narrow(4, 8), half(4, 1)), 2 * 32, 64, 32 + 8),
        # query and key in place: 3 FLOP an element; rows of the table for 4 positions, 8 numbers each; 4 positions of 4 bytes
        ("sgl_kernel::rotary_embedding", (ids(4), X, R, 8, half(99, 8), True), 3 * 64, 128 + 64 + 16, 128),
        (
            "sgl_kernel::apply_rope_pos_ids_cos_sin_cache",
            (X, R, OUT, OUT, half(99, 8), ids(4), False),
            3 * 64,
            128 + 64 + 16,
            128,
        ),
        ("sglang::store_cache", (X, R, half(999, 8), half(999, 8), ids(4), 16, 0), 0, 128, 128),
        ("_C_cache_ops::concat_and_cache_mla", (X, half(4, 2), narrow(999, 1, 10), ids(4), "fp8"), 0, 80, 40),
        ("aiter::gemm_a16w16", (X, half(5, 8), None, 15), 2 * 4 * 8 * 5, 64 + 80, 40),
        ("_C::cutlass_scaled_mm", (half(4, 5), narrow(4, 8), narrow(8, 5)), 2 * 4 * 8 * 5, 32 + 40, 40),
        (
            "sgl_kernel::fp8_scaled_mm",
            (narrow(4, 8), narrow(8, 5), half(4), half(5)),
            2 * 4 * 8 * 5,
            32 + 40,
            40,
        ),
        ("_moe_C::moe_sum", (half(4, 2, 8), OUT), 32, 128, 64),
        ("_moe_C::topk_softmax", (half(4, 2), ids(4, 2), ids(4, 2), X), 5 * 32, 64, 16 + 32),
        ("sgl_kernel::topk_softmax", (half(4, 2), ids(4, 2), X, False), 5 * 32, 64, 16 + 32),
    ],
)
def test_figures_by_hand(*, cost, name, arguments, flop, read, written):
    found = cost(name, *arguments)
    assert (found.flop, found.bytes_read, found.bytes_written) == (flop, read, written)


@pytest.mark.parametrize("library", ["vllm::inplace", "vllm::outplace", "sglang::inplace"])
def test_experts_are_two_products_and_read_the_weights_that_tokens_reach(cost, library):
    """3 tokens of 8 numbers choose 2 of 16 experts: 6 of them are reached; gate and up have 2·5 rows."""
    weights = half(16, 10, 8), half(16, 8, 5)
    found = cost(f"{library}_fused_experts", half(3, 8), *weights, torch.empty(3, 2), ids(3, 2))
    assert found.flop == 2 * 6 * (8 * 10 + 5 * 8)
    assert found.bytes_read == 3 * 8 * 2 + 6 * (80 + 40) * 2 + 6 * 4 + 6 * 4
    assert found.bytes_written == 3 * 8 * 2
    assert "experts" in found.assumption
    many = cost(f"{library}_fused_experts", half(99, 8), *weights, torch.empty(99, 2), ids(99, 2))
    assert many.bytes_read == 99 * 16 + 16 * 240 + 198 * 8  # no more than all


def test_packed_weights_of_experts_say_so(cost):
    with pytest.raises(NotRecordedError, match="packed"):
        cost(
            "vllm::inplace_fused_experts",
            half(3, 8),
            narrow(16, 10, 4),
            narrow(16, 8, 5),
            half(3, 2),
            ids(3, 2),
        )


MIXED = "execute_7_context_2(sq6sk10sqsq20sqsk32)_generation_3(sq3sk90sqsq3sqsk90)"
DECODE = "step[DECODE bs=3 g_sq=3 g_sk=90 g_sqsq=3 g_sqsk=90]"


def test_attention_of_a_step_follows_from_its_annotation(record):
    """25 visible pairs of two prompts and 90 of three that generate; 10 + 90 keys of 2 heads of 4 numbers."""
    q, k, v = half(9, 6, 4), half(9, 2, 4), half(9, 2, 4)
    found = cost_of(
        within(record("vllm::unified_attention_with_output", q, k, v, half(9, 6, 4), "layer.0"), MIXED)
    )
    assert found.flop == 2 * 6 * (25 + 90) * (4 + 4)
    assert found.bytes_read == 9 * 6 * 4 * 2 + 100 * 2 * 8 * 2
    assert found.bytes_written == 9 * 6 * 4 * 2
    assert found.unit == "matrix"


def test_paged_attention_reads_the_pages_of_its_requests_and_not_the_cache(record):
    q, cache = half(3, 6, 4), half(5000, 16, 2, 4)
    calls = [
        record("_C::paged_attention_v1", q, q, cache, cache, 2, 0.5, ids(3, 9), ids(3), 16, 99),
        record("aiter::paged_attention_rocm", q, q, q, q, q, cache, cache, 2, 0.5, ids(3, 9)),
        record(
            "aiter::paged_attention_ragged", q, narrow(9), q, half(5000, 1, 2, 4), half(5000, 1, 2, 4), 0.5
        ),
    ]
    for call in calls:
        found = cost_of(within(call, DECODE))
        assert found.flop == 2 * 6 * 90 * 8
        assert found.bytes_read == 3 * 6 * 4 * 2 + 90 * 2 * 8 * 2


@pytest.mark.parametrize("annotation", ["step[DECODE bs=3]", "execute_context_0(0)_generation_3(3)"])
def test_lengths_that_nothing_tells_are_not_guessed(record, annotation):
    q, cache = half(3, 6, 4), half(5000, 1, 2, 4)
    call = record("aiter::paged_attention_ragged", q, narrow(9), q, cache, cache, 0.5)
    for one in (call, within(call, annotation)):
        with pytest.raises(NotRecordedError, match="lengths of the sequences"):
            cost_of(one)


def test_packed_sequences_of_one_length_need_no_annotation(record, cost):
    """Two sequences of 4, causal: 10 pairs each; the same as a dense batch of two."""
    q, k = half(8, 6, 4), half(8, 2, 4)
    found = cost("flash_attn::_flash_attn_varlen_forward", q, k, k, ids(3), ids(3), 4, 4, 0.0, 0.5, True)
    assert found.flop == 2 * 6 * 20 * 8
    dense = cost(
        "flash_attn::_flash_attn_forward",
        half(2, 4, 6, 4),
        half(2, 4, 2, 4),
        half(2, 4, 2, 4),
        0.0,
        0.5,
        True,
    )
    assert (found.flop, found.num_bytes) == (dense.flop, dense.num_bytes)
    fa2 = cost(
        "_vllm_fa2_C::varlen_fwd",
        q,
        k,
        k,
        q,
        ids(3),
        ids(3),
        None,
        None,
        None,
        None,
        4,
        4,
        0.0,
        0.5,
        False,
        True,
    )
    assert fa2.flop == found.flop
    with pytest.raises(NotRecordedError, match="lengths"):
        cost("flash_attn::_flash_attn_varlen_forward", q, k, k, ids(3), ids(3), 5, 5, 0.0, 0.5, True)


def test_a_trace_takes_the_lengths_of_each_call_from_its_own_step(builder):
    """The same shapes cost more in the later step, whose requests have grown."""
    dims, types = [[3, 6, 4], [3, 2, 4], [3, 2, 4], [3, 6, 4], []], ["c10::BFloat16"] * 4 + ["Scalar"]
    for i, keys in enumerate((90, 300)):
        builder.annotate(f"step[DECODE bs=3 g_sq=3 g_sk={keys} g_sqsq=3 g_sqsk={keys}]", 100 * i, 80)
        builder.op(
            "vllm::unified_attention_with_output",
            100 * i + 5,
            50,
            **{"Input Dims": dims, "Input type": types},
        )
        builder.launch("attention", 100 * i + 10, 100 * i + 20, 10)
    table = roofline(builder.read())
    assert sorted(table["flop"]) == [2 * 6 * 90 * 8, 2 * 6 * 300 * 8]


def test_what_sglang_records_of_aiters_functions_is_that_function(record):
    q, cache = half(3, 6, 4), half(5000, 1, 2, 4)
    name = "sglang_profiler::attention_paged_attention_ragged_100"
    found = cost_of(within(record(name, q, narrow(9), q, cache, cache, ids(4)), DECODE))
    assert found.flop == 2 * 6 * 90 * 8
