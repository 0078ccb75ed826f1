"""What Inductor's generated code itself shows: kernels, calls of ready-made ones, buffers taken and used again.

It is in the log also when the graph came from a cache, where nothing else is known of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyrometer.compiler.log import CompileLog, LogEntry

_KERNEL = re.compile(
    r"^(?P<name>\w+) = async_compile\.(?P<language>\w+)\((?P<body>.*?)^'''", re.MULTILINE | re.DOTALL
)
_READY_MADE = re.compile(r"^ +(?:\w+ = )?(?P<name>extern_kernels\.\w+|torch\.ops\.[\w.]+)\(", re.MULTILINE)
_CALL = re.compile(r"^ +(?P<name>\w+)(?:\.run)?\(", re.MULTILINE)
_ALLOCATION = re.compile(r"^ +\w+ = empty_strided_\w+\(", re.MULTILINE)
_REUSE = re.compile(r"# reuse\b")
_BACKWARD = re.compile(r"^# AOT ID: \['\d+_backward'\]|\btangents_\d+\b", re.MULTILINE)
_KINDS = {
    "triton_poi": "pointwise",
    "triton_red": "reduction",
    "triton_per": "reduction",
    "triton_tem": "template",
}


@dataclass(frozen=True)
class GeneratedGraph:
    """The code of one compiled graph."""

    compile_id: str
    is_backward: bool
    kernels: dict[str, bool | None]
    """In the order of their calls; whether they use vector instructions, `None` off the CPU."""
    ready_made: list[str]
    """Ready-made kernels, one per call."""
    allocations: int
    reuses: int


def read_generated(log: CompileLog) -> list[GeneratedGraph]:
    """The code of every graph in the log; of a graph that was written again the last."""
    found = [_graph(entry) for entry in log.of("inductor_output_code") if entry.payload]
    return list({(one.compile_id, one.is_backward): one for one in found}.values())


def kernel_kind(name: str) -> str:
    """The kind of a kernel, from the name that Inductor gives it.

    >>> kernel_kind("triton_per_fused_native_layer_norm_0"), kernel_kind("cpp_fused_add_relu_0")
    ('reduction', 'fused')
    """
    return _KINDS.get("_".join(name.split("_")[:2]), "fused")


def _graph(entry: LogEntry) -> GeneratedGraph:
    code = entry.payload
    defined = {
        found["name"]: "at::vec::" in found["body"] if found["language"].startswith("cpp") else None
        for found in _KERNEL.finditer(code)
    }
    called = [found["name"] for found in _CALL.finditer(code) if found["name"] in defined]
    return GeneratedGraph(
        compile_id=entry.compile_id.text if entry.compile_id is not None else "",
        is_backward=_BACKWARD.search(code) is not None,
        kernels={name: defined[name] for name in called},
        ready_made=[found["name"] for found in _READY_MADE.finditer(code)],
        allocations=len(_ALLOCATION.findall(code)),
        reuses=len(_REUSE.findall(code)),
    )
