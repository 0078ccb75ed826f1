"""The formulas that performance guides quote, each as a named function."""

from __future__ import annotations

import math

from pyrometer.errors import InputError
from pyrometer.quantity import Bytes, Seconds


def speedup(base_s: Seconds, optimised_s: Seconds) -> float:
    """`T_base / T_opt`: above 1 is faster.

    >>> speedup(0.2, 0.1)
    2.0
    """
    return base_s / optimised_s


def memory_efficiency(effective_batch: float, peak_bytes: Bytes) -> float:
    """Effective batch per byte of peak memory.

    >>> memory_efficiency(32, 2**30) * 2**30
    32.0
    """
    return effective_batch / peak_bytes


def compile_benefit(
    eager_s: Seconds, compiled_s: Seconds, compilation_s: Seconds, num_steps: int = 1
) -> float:
    """Share of the eager time that compilation saves over `num_steps` steps, its own cost included.

    `(n·T_eager − n·T_compiled − T_compilation) / (n·T_eager)`; negative until the cost is repaid.

    >>> compile_benefit(1.0, 0.5, 0.25)
    0.25
    >>> compile_benefit(1.0, 0.5, 10.0, num_steps=100)
    0.4
    """
    return (num_steps * (eager_s - compiled_s) - compilation_s) / (num_steps * eager_s)


def break_even_steps(eager_s: Seconds, compiled_s: Seconds, compilation_s: Seconds) -> int | None:
    """Steps after which compilation has repaid its cost; `None` when it never does.

    >>> break_even_steps(0.010, 0.006, 40.0), break_even_steps(0.006, 0.010, 40.0)
    (10000, None)
    """
    saved = eager_s - compiled_s
    return math.ceil(round(compilation_s / saved, 6)) if saved > 0 else None


def global_batch(per_device: int, num_devices: int, accumulate: int = 1) -> int:
    """Samples per optimizer step over all devices.

    >>> global_batch(8, 4, accumulate=2)
    64
    """
    return per_device * num_devices * accumulate


def effective_tokens_per_s(num_tokens: float, padding_ratio: float, step_s: Seconds) -> float:
    """Tokens per second without the padding.

    >>> effective_tokens_per_s(1000, 0.25, 0.5)
    1500.0
    """
    return num_tokens * (1 - padding_ratio) / step_s


def padding_ratio(num_real: float, num_padded: float) -> float:
    """Share of padding in a batch of `num_padded` places that hold `num_real` tokens.

    >>> padding_ratio(60, 80)
    0.25
    """
    if num_padded <= 0:
        raise InputError(f"padding ratio: got {num_padded} places; there must be at least one")
    return 1 - num_real / num_padded


def data_share(data_s: Seconds, step_s: Seconds) -> float:
    """Share of a step that was spent waiting for data.

    >>> data_share(0.025, 0.1)
    0.25
    """
    return data_s / step_s


def pipelined_step_s(data_s: Seconds, compute_s: Seconds) -> Seconds:
    """Step time when loading overlaps computing perfectly: the longer of the two.

    >>> pipelined_step_s(0.08, 0.05)
    0.08
    """
    return max(data_s, compute_s)
