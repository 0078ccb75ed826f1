"""What operators and kernels calculate, by families that survive another way of writing the same."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from pyrometer.trace.naming.generated_kernels import parse_generated
from pyrometer.trace.naming.kernel_names import read_name

PRODUCT = "product"

FAMILIES: tuple[tuple[str, str], ...] = (
    ("convolution", r"conv(?!ert)|im2col"),
    ("lstm", r"lstm"),
    ("gru", r"(^|_)gru(_|$)"),
    ("embedding", r"embedding"),
    ("attention", r"attention|attn|(?<!log_)softmax|sdpa"),
    ("fft", r"fft"),
    (
        PRODUCT,
        r"^_?((add|b|baddb|addb|int_|scaled_|grouped_)?mm|(add)?mv|dot|linear|matmul|einsum|bilinear|tensordot)(_|$)|gemm|linear_pointwise",
    ),
    ("normalisation", r"(batch|layer|group|instance|rms)_?norm"),
    ("pooling", r"_pool"),
    ("relu", r"(?<!leaky_)relu"),
    ("gelu", r"gelu"),
    ("silu", r"silu"),
    ("tanh", r"^_?tanh"),
    ("upsampling", r"upsample|interpolate|grid_sample"),
    ("sorting", r"^(arg)?sort|topk"),
    ("scattering", r"scatter|index_add|index_put"),
    ("cross entropy", r"cross_entropy|nll_loss"),
    ("squared error", r"mse_loss"),
)
"""Family, and the pattern of its operators without their namespace; the first that matches decides."""

HEAVY = frozenset({"convolution", "lstm", "gru", "embedding", "attention", "fft", PRODUCT})
"""Families that tell programs apart."""

OF_KERNELS = {
    "conv": "convolution",
    "gemm": PRODUCT,
    "attention": "attention",
    "embedding": "embedding",
    "norm": "normalisation",
    "pooling": "pooling",
}
"""Categories of kernels that say as much."""

_PATTERNS = tuple((family, re.compile(pattern)) for family, pattern in FAMILIES)


@cache
def family_of(name: str) -> frozenset[str]:
    """Families of an operator, or of the operators that a generated kernel was made of; none for what any program calls.

    >>> family_of("aten::addmm"), family_of("aten::convert_element_type"), sorted(family_of("triton_poi_fused_convolution_relu_0"))
    (frozenset({'product'}), frozenset(), ['convolution', 'relu'])
    """
    generated = parse_generated(name)
    if generated is not None:
        sources = list(generated.source_ops)
        return frozenset(family for source in sources if (family := _family(source)) is not None)
    space, _, operator = name.partition("::")
    family = _family(operator) if operator and space != "autograd" else None
    return frozenset() if family is None else frozenset({family})


def kernel_families(names: Iterable[str]) -> frozenset[str]:
    """Families of kernels, by their category or, of generated ones, by their source operators."""
    families = [family_of(name) | {OF_KERNELS.get(read_name(name).category, "")} for name in names]
    return frozenset().union(*families) - {""}


def _family(operator: str) -> str | None:
    return next((family for family, pattern in _PATTERNS if pattern.search(operator)), None)
