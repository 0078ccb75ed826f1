"""What a collective is called, how many bytes it moves, and how its bandwidth is judged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

NAMES = (
    (r"wait|^init$|_wrap|start_coal|end_coal", None),
    (r"barrier", "barrier"),
    (r"all_?to_?all|deep_?ep", "all_to_all"),
    (r"reduce_?scatter", "reduce_scatter"),
    (r"all_?gather", "all_gather"),
    (r"all_?reduce|cross_device_reduce|(one|two)_shot|quick_reduce", "all_reduce"),
    (r"broadcast|bcast", "broadcast"),
    (r"gather", "gather"),
    (r"scatter", "scatter"),
    (r"reduce", "reduce"),
    (r"send_?recv", "send_recv"),
    (r"(?<![a-z])i?send", "send"),
    (r"(?<![a-z])i?recv", "recv"),
    (r"coalesced", "coalesced"),
)
"""Pattern, and what it means; the first that is found counts. None: bookkeeping, which is no collective."""

POINT_TO_POINT = ("send", "recv")

ENDS_TOGETHER = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier")
"""Collectives that no rank can leave before the last has come: their ends are one moment."""

SAME_SIZE = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
"""Collectives whose message has the same size on every rank."""

ELEMENT_BYTES: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(("double", "float64", "long", "int64", "complexfloat", "unsigned long", "uint64"), 8),
        **dict.fromkeys(("float", "float32", "int", "int32", "unsigned int", "uint32"), 4),
        **dict.fromkeys(("half", "float16", "bfloat16", "short", "int16", "unsigned short", "uint16"), 2),
        **dict.fromkeys(("byte", "char", "signed char", "unsigned char", "int8", "uint8", "bool"), 1),
        **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"), 1),
        "complexdouble": 16,
    }
)
"""Size of an element by dtype, as c10 and C++ spell it, in lower case and without a leading `c10::`."""


@lru_cache(maxsize=4096)
def canonical(name: str | None) -> str | None:
    """The common name of a collective, from the name of an argument, operator, annotation or kernel.

    Gives `other` where it is none of the known ones, and None for what is no collective at all, such as a wait.

    >>> canonical("c10d::_allgather_base_"), canonical("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)")
    ('all_gather', 'all_reduce')
    >>> canonical("gloo:send"), canonical("wait"), canonical("nvshmem_put")
    ('send', None, 'other')
    """
    lowered = (name or "wait").lower()
    return next((meaning for pattern, meaning in NAMES if re.search(pattern, lowered)), "other")


def element_bytes(dtype: str | None) -> int | None:
    """Bytes of one element; None for a dtype that is not known.

    >>> element_bytes("c10::BFloat16"), element_bytes("Float"), element_bytes("TensorList")
    (2, 4, None)
    """
    return ELEMENT_BYTES.get((dtype or "").lower().removeprefix("c10::"))


def message_elements(name: str, num_in: int | None, num_out: int | None, size: int | None) -> int | None:
    """Elements of the message as nccl-tests counts it: what the largest buffer of a rank holds.

    That is the result of an all-gather and the input of a reduce-scatter; the size of the group makes up for a result
    that the trace does not tell.

    >>> message_elements("all_gather", 10, None, 4), message_elements("reduce_scatter", 40, 10, 4)
    (40, 40)
    """
    known = [n for n in (num_in, num_out) if n is not None]
    if not known:
        return None
    if name in {"all_gather", "gather"} and num_out is None and size:
        return max(known) * size
    return max(known)


def bus_factor(name: str, size: int | None) -> float:
    """What turns the algorithm's bandwidth (message over time) into that of the links, which hardware limits.

    From PERFORMANCE.md of nccl-tests: `2(n-1)/n` for an all-reduce, `(n-1)/n` for all-gather, reduce-scatter, all-to-all,
    gather and scatter, 1 for broadcast, reduce, send and receive. An unknown size counts as large.

    >>> bus_factor("all_reduce", 4), bus_factor("all_gather", 4), bus_factor("broadcast", 4)
    (1.5, 0.75, 1.0)
    """
    share = (size - 1) / size if size else 1.0
    if name == "all_reduce":
        return 2 * share
    return share if name in {"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"} else 1.0


@lru_cache(maxsize=4096)
def ranks_of(text: str | None) -> tuple[int, ...] | None:
    """Ranks of a group from their text; None where it is missing or cut off.

    >>> ranks_of("[0, 1, 2]"), ranks_of("[0, 1, ...]")
    ((0, 1, 2), None)
    """
    if not text or "..." in text:
        return None
    return tuple(int(number) for number in re.findall(r"\d+", text)) or None
