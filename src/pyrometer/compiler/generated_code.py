"""What a file of Inductor's code shows by itself: kernels, calls of ready-made ones, buffers taken and used again.

It is in the log also when the graph came from a cache, where nothing else is known of it. Comments in the code are aids for
readers that torch promises nothing about; of those only the number of the graph at the top and the mark of a reused buffer
are read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

_KERNEL = re.compile(r"^(?P<name>\w+) = async_compile\.(?P<language>\w+)\(", re.MULTILINE)
_CPP_KERNEL = re.compile(r'^extern "C"\s+void\s+(\w+)\(', re.MULTILINE)
_GRAPH = re.compile(r"^# AOT ID: (?P<id>.*)", re.MULTILINE)
_TANGENT = re.compile(r"\btangents_\d+\b")
_CALLS_BEGIN = "async_compile.wait(globals())"
_CALLS_END = re.compile(r"^(?:def benchmark_compiled_module|def get_args|if __name__ ==)", re.MULTILINE)
_CALL = re.compile(r"^ +(\w+)(?:\.run)?\(", re.MULTILINE)
_EXTERN = re.compile(
    r"(?<![\w.'\"])(extern_kernels\.\w+|torch\.ops(?:\.\w+){2,}|aten(?:\.\w+)+|aoti_torch_(?:cpu|cuda|xpu|mps)_\w+)\("
)
"""Calls of ready-made kernels, under the names that stand in the code."""

_ALLOCATION = re.compile(r"= empty_strided\w*\(|aoti_torch_empty_strided\w*\(")
_REUSE = re.compile(r"(?:#|//) reuse\s*$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*(?:#|//).*$", re.MULTILINE)
_VECTOR = "at::vec::"
_KINDS = {
    "triton_poi": "pointwise",
    "triton_red": "reduction",
    "triton_per": "reduction",
    "triton_tem": "template",
}


@dataclass(frozen=True)
class CodeParts:
    """One file of code, taken apart."""

    kernels: dict[str, bool | None]
    """Those that it defines; whether they use vector instructions, `None` off the CPU."""
    called: list[str]
    """Those of them that it calls, each once, in the order of their calls."""
    extern_calls: list[str]
    """Ready-made kernels, one per call."""
    allocations: int
    reuses: int
    """Buffers that take the place of dead ones."""
    is_backward: bool


def read_generated(code: str) -> CodeParts:
    """Take a file apart; what is not understood is not in it."""
    calls = _calls(code)
    plain = _COMMENT.sub("", calls)
    kernels = _kernels(code)
    return CodeParts(
        kernels=kernels,
        called=list(dict.fromkeys(name for name in _CALL.findall(plain) if name in kernels)),
        extern_calls=_EXTERN.findall(plain),
        allocations=len(_ALLOCATION.findall(plain)),
        reuses=len(_REUSE.findall(calls)),
        is_backward=_is_backward(code),
    )


def kernel_kind(name: str) -> str:
    """The kind of a kernel, from the name that Inductor gives it.

    >>> kernel_kind("triton_per_fused_native_layer_norm_0"), kernel_kind("cpp_fused_add_relu_0")
    ('reduction', 'fused')
    """
    return _KINDS.get("_".join(name.split("_")[:2]), "fused")


def _kernels(code: str) -> dict[str, bool | None]:
    defined = list(_KERNEL.finditer(code))
    if not defined:  # calls and kernels may be one C++ source
        return dict.fromkeys(_CPP_KERNEL.findall(code), _VECTOR in code)
    ends = [*(match.start() for match in defined), len(code)]
    return {
        match["name"]: _VECTOR in code[start:end] if match["language"].startswith("cpp") else None
        for match, (start, end) in zip(defined, pairwise(ends), strict=True)
    }


def _calls(code: str) -> str:
    """The part that calls kernels, without their source and without the benchmark at the end."""
    found = code.partition(_CALLS_BEGIN)[2] or code
    end = _CALLS_END.search(found)
    return found if end is None else found[: end.start()]


def _is_backward(code: str) -> bool:
    """By its graph's id; where it has none, by the gradients that it takes."""
    graph = _GRAPH.search(code)
    return "_backward" in graph["id"] if graph is not None else _TANGENT.search(code) is not None
