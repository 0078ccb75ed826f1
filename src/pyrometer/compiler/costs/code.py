"""The code that Inductor wrote, and where its kernels come from."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pyrometer.compiler.collecting.entries import payload_json
from pyrometer.compiler.costs.record import GeneratedCode, KernelOrigin
from pyrometer.compiler.generated_code import read_generated
from pyrometer.compiler.log import CompileLog, LogEntry
from pyrometer.compiler.user_code import line_outside_torch

MAPPINGS = "inductor_provenance_tracking_node_mappings"
STACKS = "inductor_provenance_tracking_kernel_stack_traces"
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
        own = entry.id_text
        content = payload_json(entry)
        # forward and backward of one compilation follow each other: the n-th of one kind goes with the n-th of the other
        pairs[own, numbers[own, entry.kind]][entry.kind] = content if isinstance(content, dict) else {}
        numbers[own, entry.kind] += 1
    return [origin for (own, _), pair in pairs.items() for origin in _origins(own, pair)]


def _generated(entry: LogEntry) -> GeneratedCode:
    text, parts = entry.payload, read_generated(entry.payload)
    on_cpu = [is_vectorized for is_vectorized in parts.kernels.values() if is_vectorized is not None]
    return GeneratedCode(
        compile_id=entry.id_text,
        path=str(entry.fields.get("file_path") or entry.fields.get("filename") or ""),
        num_bytes=len(text.encode("utf-8", "surrogatepass")),
        num_lines=len(text.splitlines()),
        kernels=list(parts.kernels),
        extern_calls=dict(Counter(parts.extern_calls)),
        allocations=parts.allocations,
        reuses=parts.reuses,
        is_backward=parts.is_backward,
        vectorized=any(on_cpu) if on_cpu else None,
    )


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
            places=list(dict.fromkeys(filter(None, map(line_outside_torch, _texts(stacks.get(handle)))))),
        )


def _texts(found: Any) -> list[str]:
    return [text for text in found if isinstance(text, str)] if isinstance(found, list) else []
