"""What networks are made of: operators of layers, and how much of a function's time is the work of those."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.quantity import Ratio
from pyrometer.rules.host.patterns.rounds import DISPATCHES, operators_below
from pyrometer.rules.joining import Located
from pyrometer.rules.kernels.patterns.operators import CONVOLUTIONS, MATRIX_PRODUCTS
from pyrometer.source.words import words

if TYPE_CHECKING:
    from pyrometer.trace.records.rank import RankReport

LAYERS = (
    MATRIX_PRODUCTS
    | CONVOLUTIONS
    | frozenset(
        f"aten::{name}{ending}"
        for name in words("""
            _batch_norm native_batch_norm batch_norm_impl_index native_layer_norm native_group_norm rms_norm _fused_rms_norm
            _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention
            _scaled_dot_product_attention_math _scaled_dot_product_cudnn_attention
            _softmax _log_softmax gelu silu relu elu leaky_relu hardswish hardtanh softplus mish _prelu_kernel threshold
            embedding embedding_dense _embedding_bag max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices mkldnn_max_pool2d avg_pool2d
            avg_pool3d _adaptive_avg_pool2d adaptive_max_pool2d mkldnn_rnn_layer lstm gru rnn_tanh _cudnn_rnn _thnn_fused_lstm_cell
            _thnn_fused_gru_cell upsample_nearest2d upsample_bilinear2d upsample_bicubic2d grid_sampler_2d native_dropout
            im2col col2im pixel_shuffle nll_loss_forward nll_loss2d_forward _ctc_loss _transformer_encoder_layer_fwd
            _native_multi_head_attention mkldnn_linear _fft_r2c _fft_c2r _fft_c2c
            """)
        for ending in ("", "_", "_backward")
    )
)
"""Operators that the time of a network may well go to."""


def layer_share(trace: RankReport, where: Located, function: str | None) -> Ratio | None:
    """The part of a function's operators, with those of functions that it calls, that is work of layers, beyond their dispatch.

    Null where the trace shows no operators in it.
    """
    operators = operators_below(trace, where, function)
    whole_ns = sum(node.self_ns for node in operators)
    if not whole_ns:
        return None
    dispatch_ns = DISPATCHES * (trace.launches.host.dispatch_ns or 0)
    layers = (node for node in operators if node.name in LAYERS)
    return sum(max(0, node.self_ns - dispatch_ns * node.calls) for node in layers) / whole_ns
