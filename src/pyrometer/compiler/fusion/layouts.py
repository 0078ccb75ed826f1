"""The memory layout of a buffer, by its usual name."""

from __future__ import annotations

from collections.abc import Sequence

_CHANNELS_LAST = {4: (1, 3, 2, 0), 5: (1, 4, 3, 2, 0)}
"""Dimensions from the innermost outwards."""

_NO_STRIDES = {"NoneLayout": "none", "MultiOutput": "several", "NonOwning": "view", "Mutation": "view"}
"""Layouts without strides of their own, by the beginning of their classes' names."""


def layout_name(kind: str, size: Sequence[int], stride: Sequence[int]) -> str:
    """Name a layout: contiguous, channels last, transposed, padded, broadcast, view, several, none or unknown.

    Args:
        kind: Inductor's class of the layout.
        size: of the buffer; a negative one is not known.
        stride: in elements.

    >>> layout_name("FixedLayout", [2, 3], [3, 1]), layout_name("FixedLayout", [2, 3], [1, 2])
    ('contiguous', 'transposed')
    >>> layout_name("FixedLayout", [8, 3, 4, 4], [48, 1, 12, 3]), layout_name("FixedLayout", [2, 3], [4, 1])
    ('channels last', 'padded')
    """
    beginning = next((name for name in _NO_STRIDES if kind.startswith(name)), None)
    if beginning is not None:
        return _NO_STRIDES[beginning]
    if len(size) != len(stride) or any(number < 0 for number in (*size, *stride)):
        return "unknown"
    return _by_strides(size, stride)


def _by_strides(size: Sequence[int], stride: Sequence[int]) -> str:
    long = [dim for dim, length in enumerate(size) if length > 1]
    if any(stride[dim] == 0 for dim in long):
        return "broadcast"
    orders = {
        "contiguous": long[::-1],
        "channels last": [dim for dim in _CHANNELS_LAST.get(len(size), ()) if dim in long],
        "transposed": sorted(long, key=lambda dim: stride[dim]),
    }
    return next(
        (name for name, order in orders.items() if _is_dense(size, stride, order, len(long))), "padded"
    )


def _is_dense(
    size: Sequence[int], stride: Sequence[int], inner_to_outer: Sequence[int], num_long: int
) -> bool:
    if len(inner_to_outer) != num_long:
        return False
    expected = 1
    for dim in inner_to_outer:
        if stride[dim] != expected:
            return False
        expected *= size[dim]
    return True
