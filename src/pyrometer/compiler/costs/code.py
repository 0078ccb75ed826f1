"""The code that Inductor wrote, and where its kernels come from.

Comments in the code are aids for readers that torch promises nothing about; of those only the number of the graph at the
top and the mark of a reused buffer are read.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pyrometer.compiler.collecting.entries import payload_json
from pyrometer.compiler.costs.record import GeneratedCode, KernelOrigin
from pyrometer.compiler.log import CompileLog, LogEntry

_KERNEL = re.compile(r"^(\w+) = async_compile\.(\w+)\(", re.MULTILINE)
_CPP_KERNEL = re.compile(r'^extern "C"\s+void\s+(\w+)\(', re.MULTILINE)
_BACKWARD = re.compile(r"^# AOT ID: \['?[^'\]]*_backward'?", re.MULTILINE)
_CALLS_BEGIN = "async_compile.wait(globals())"
_CALLS_END = re.compile(r"^(?:def benchmark_compiled_module|def get_args|if __name__ ==)", re.MULTILINE)
_EXTERN = re.compile(
    r"(?<![\w.'\"])(extern_kernels\.\w+|torch\.ops(?:\.\w+){2,}|aten(?:\.\w+)+|aoti_torch_(?:cpu|cuda|xpu|mps)_\w+)\("
)
"""Calls of ready-made kernels, under the names that stand in the code."""

_ALLOCATION = re.compile(r"= empty_strided\w*\(|aoti_torch_empty_strided\w*\(")
_REUSE = re.compile(r"(?:#|//) reuse\s*$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*(?:#|//).*$", re.MULTILINE)
_VECTOR = "at::vec::"
_CPP_KINDS = frozenset({"cpp", "cpp_pybinding"})

MAPPINGS = "inductor_provenance_tracking_node_mappings"
STACKS = "inductor_provenance_tracking_kernel_stack_traces"
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_TORCH_FILE = re.compile(r"(?:site|dist)-packages[/\\]torch[/\\]")
_CALL_NUMBER = re.compile(r"^(?P<kernel>.+?)(?::(?P<call>\d+))?$", re.DOTALL)


def read_code(log: CompileLog) -> list[GeneratedCode]:
    """The files that Inductor wrote, or found in its cache, in order.

    Source: `inductor_output_code` of torch's structured trace.
    """
    return [_generated(entry) for entry in log.of("inductor_output_code")]


def artifact_bytes(codes: Iterable[GeneratedCode]) -> int:
    """Size of the generated code; a file that serves several graphs counts once.

    >>> one = GeneratedCode(compile_id="0/0", path="a.py", num_bytes=10, num_lines=1)
    >>> artifact_bytes([one, one])
    10
    """
    return sum(
        {(code.path or number, code.num_bytes): code.num_bytes for number, code in enumerate(codes)}.values()
    )


def read_origins(log: CompileLog) -> list[KernelOrigin]:
    """The graph's nodes and the user's lines of each call of a kernel.

    Source: artifacts of `torch._inductor.config.trace.provenance_tracking_level = 1`. Code that a cache held from a
    compilation without that setting has none.
    """
    pairs: dict[tuple[str, int], dict[str, Any]] = defaultdict(dict)
    numbers: Counter[tuple[str, str]] = Counter()
    for entry in log.of(MAPPINGS, STACKS):
        own = "" if entry.compile_id is None else entry.compile_id.text
        content = payload_json(entry)
        # forward and backward of one compilation follow each other: the n-th of one kind goes with the n-th of the other
        pairs[own, numbers[own, entry.kind]][entry.kind] = content if isinstance(content, dict) else {}
        numbers[own, entry.kind] += 1
    return [origin for (own, _), pair in pairs.items() for origin in _origins(own, pair)]


def _generated(entry: LogEntry) -> GeneratedCode:
    text, told = entry.payload, entry.metadata if isinstance(entry.metadata, dict) else {}
    kernels = _KERNEL.findall(text)
    calls = _COMMENT.sub("", _calls(text))
    cpp_names = [] if kernels else _CPP_KERNEL.findall(text)
    on_cpu = bool(cpp_names) or any(kind in _CPP_KINDS for _, kind in kernels)
    return GeneratedCode(
        compile_id="" if entry.compile_id is None else entry.compile_id.text,
        path=str(told.get("file_path") or told.get("filename") or ""),
        num_bytes=len(text.encode("utf-8", "surrogatepass")),
        num_lines=len(text.splitlines()),
        kernels=[name for name, _ in kernels] or list(dict.fromkeys(cpp_names)),
        extern_calls=dict(Counter(_EXTERN.findall(calls))),
        allocations=len(_ALLOCATION.findall(calls)),
        reuses=len(_REUSE.findall(_calls(text))),
        is_backward=_BACKWARD.search(text[:500]) is not None,
        vectorized=(_VECTOR in text) if on_cpu else None,
    )


def _calls(text: str) -> str:
    """The part that calls kernels, without their source and without the benchmark at the end."""
    found = text.partition(_CALLS_BEGIN)[2] or text
    end = _CALLS_END.search(found)
    return found if end is None else found[: end.start()]


def _origins(compile_id: str, pair: Mapping[str, Mapping[str, Any]]) -> Iterator[KernelOrigin]:
    nodes = pair.get(MAPPINGS, {}).get("cppCodeToPost")
    nodes = nodes if isinstance(nodes, dict) else {}
    stacks = pair.get(STACKS, {})
    for handle in dict.fromkeys([*nodes, *stacks]):
        match = _CALL_NUMBER.match(handle)
        if match is None:
            continue
        yield KernelOrigin(
            compile_id=compile_id,
            kernel=match["kernel"],
            call=None if match["call"] is None else int(match["call"]),
            ops=_texts(nodes.get(handle)),
            places=list(dict.fromkeys(filter(None, map(_user_line, _texts(stacks.get(handle)))))),
        )


def _texts(found: Any) -> list[str]:
    return [text for text in found if isinstance(text, str)] if isinstance(found, list) else []


def _user_line(stack: str) -> str:
    """The innermost line that is not torch's own, as `file:line`; empty if there is none."""
    frames = [(match["file"], match["line"]) for match in _FRAME.finditer(stack)]
    own = [frame for frame in frames if not _TORCH_FILE.search(frame[0])] or frames
    return ":".join(own[-1]) if own else ""
