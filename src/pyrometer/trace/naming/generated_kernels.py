"""Kernels that `torch.compile` generated: the source operators that their names spell."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

KINDS = {
    "poi": "pointwise",
    "red": "reduction",
    "per": "persistent reduction",
    "tem": "template",
    "for": "foreach",
    "spl": "split scan",
}
"""Inductor's abbreviations."""

_NAME = re.compile(
    r"^(?:triton_(?P<kind>[a-z]{3})|(?:graph_\d+_)?(?P<cpp>cpp))_fused(?:_(?P<ops>(?!\d+$).+?))?(?:_\d+)?$"
)

_ARITHMETIC_NAMES = """
add sub mul div pow exp log sqrt rsqrt sin cos tanh sigmoid relu gelu silu neg abs mean sum amax amin max
min var clamp clamp_min clamp_max maximum minimum erf reciprocal rsub native_layer_norm
native_layer_norm_backward _softmax _log_softmax softmax log_softmax _softmax_backward_data
_log_softmax_backward_data native_group_norm native_batch_norm threshold_backward gelu_backward
silu_backward sigmoid_backward tanh_backward native_dropout native_dropout_backward addcmul addcdiv lerp
leaky_relu hardtanh hardswish elu cumsum prod norm linalg_vector_norm var_mean mse_loss where
_native_batch_norm_legit _native_batch_norm_legit_functional native_layer_norm layer_norm rms_norm
"""
ARITHMETIC = frozenset(_ARITHMETIC_NAMES.split())
"""Source operators that calculate; the rest moves, compares or makes elements."""

_MULTI_WORD_NAMES = """
_unsafe_view _to_copy _unsafe_index _unsafe_index_put _unsafe_masked_index _adaptive_avg_pool2d
_adaptive_avg_pool2d_backward _scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention
_scaled_dot_product_attention_math _scaled_mm _embedding_bag _fused_rms_norm _assert_async
_weight_norm_interface adaptive_avg_pool2d avg_pool2d avg_pool2d_backward max_pool2d
max_pool2d_with_indices max_pool2d_with_indices_backward batch_norm as_strided as_strided_scatter
bitwise_and bitwise_not bitwise_or bitwise_xor binary_cross_entropy binary_cross_entropy_with_logits
constant_pad_nd convolution_backward copy_ cross_entropy_loss cudnn_batch_norm embedding_dense_backward
empty_like empty_strided floor_divide full_like group_norm index_add index_put index_select logical_and
logical_not logical_or masked_fill masked_select max_pool2d_with_indices_backward
native_batch_norm_backward native_group_norm_backward new_empty new_full new_ones new_zeros
nll_loss_backward nll_loss_forward ones_like prims_convert_element_type convert_element_type
reflection_pad2d repeat_interleave scalar_tensor scatter_add scatter_reduce select_backward select_scatter
slice_backward slice_scatter smooth_l1_loss split_with_sizes sum_backward sym_size upsample_bilinear2d
upsample_nearest2d upsample_bicubic2d zeros_like inductor_random inductor_seeds inductor_lookup_seed
random_like _foreach_add _foreach_mul _foreach_addcmul _foreach_addcdiv _foreach_lerp _foreach_sqrt
_foreach_div all_reduce all_gather_into_tensor reduce_scatter_tensor wait_tensor
"""
_MULTI_WORD = frozenset(_MULTI_WORD_NAMES.split()) | {name for name in ARITHMETIC if "_" in name}


class Generated(NamedTuple):
    """What a generated kernel's name says."""

    kind: str  # pointwise, reduction, …
    source_ops: tuple[str, ...]  # ATen operators without their namespace, in the order of the name


@cache
def parse_generated(name: str) -> Generated | None:
    """The source operators of a generated kernel; `None` for other kernels. A name that was cut off gives what is left.

    >>> parse_generated("triton_poi_fused_add_relu_0")
    Generated(kind='pointwise', source_ops=('add', 'relu'))
    >>> parse_generated("triton_red_fused__unsafe_view_add_mean_mul_pow_rsqrt_1").source_ops
    ('_unsafe_view', 'add', 'mean', 'mul', 'pow', 'rsqrt')
    >>> parse_generated("volta_sgemm_128x32_nt") is None
    True
    """
    match = _NAME.match(name)
    if match is None:
        return None
    kind = "C++ loop" if match["cpp"] else KINDS.get(match["kind"], match["kind"])
    return Generated(kind, tuple(_split(match["ops"] or "")))


def _split(text: str) -> list[str]:
    words = text.split("_")
    ops: list[str] = []
    i = 0
    while i < len(words):
        longest = next(
            (j for j in range(min(len(words), i + 8), i + 1, -1) if "_".join(words[i:j]) in _MULTI_WORD),
            i + 1,
        )
        name = "_".join(words[i:longest])
        if name:
            ops.append(name)
        i = longest
    return ops
