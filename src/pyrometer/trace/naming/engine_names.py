"""What inference engines write into the annotation of each of their steps: which requests it served, and how long they were.

vLLM writes `execute_context_2(14721)_generation_0(0)`: requests in prefill with their tokens, then those in decode.
Some builds add sums over the requests, of new tokens (`sq`), of tokens that are attended to (`sk`), and of their
products (`sqsq`, `sqsk`). SGLang writes `step[DECODE bs=64]` and `step[EXTEND bs=2 toks=14721]`, ATOM `prefill[bs=2 tok=14721]`, both with
the same sums where these are turned on. A plain `execute_model` tells a step and no more.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pyrometer.trace.records.breakdown import EngineKind

STEP = r"^(?:execute_(?:\d+_)?context_\d+\(|step\[(?:EXTEND|DECODE|MIXED)\b|(?:prefill|decode)\[bs=|execute_model$)"
"""Annotations of steps."""

_VLLM = re.compile(r"^execute_(?:\d+_)?context_(\d+)\(([^)]*)\)_generation_(\d+)\(([^)]*)\)")
_SUMS = re.compile(r"^sq(\d+)sk(\d+)sqsq(\d+)sqsk(\d+)$")
_SGLANG = re.compile(r"^step\[(EXTEND|DECODE|MIXED)\b([^\]]*)\]")
_ATOM = re.compile(r"^(prefill|decode)\[(bs=.*)\]$")


class Tokens(NamedTuple):
    """The requests of a step that are in the same phase; sums over them."""

    requests: int = 0
    queries: int = 0  # new tokens
    keys: int | None = 0  # tokens that are attended to, the new ones included; None where nothing tells
    squares: int | None = 0  # of new tokens
    products: int | None = 0  # new tokens times those that they attend to

    @property
    def pairs(self) -> int | None:
        """Pairs of a new token and one that it sees: all before it in its request, and itself.

        >>> Tokens(1, 4, 4, 16, 16).pairs, Tokens(2, 2, 300, 2, 300).pairs
        (10, 300)
        """
        if self.products is None or self.squares is None:
            return None
        return self.products - (self.squares - self.queries) // 2


class EngineStep(NamedTuple):
    """What one step served."""

    prefill: Tokens = Tokens()
    decode: Tokens = Tokens()

    @property
    def kind(self) -> EngineKind:
        """Prefill, decode, or both at once; unknown for `execute_model`."""
        if self.prefill.requests and self.decode.requests:
            return "mixed"
        return "prefill" if self.prefill.requests else "decode" if self.decode.requests else "unknown"

    @property
    def label(self) -> str:
        """A short name: `decode of 64`, `prefill of 2 (14,721 tokens)`."""
        tokens = f" ({self.prefill.queries:,} tokens)" if self.prefill.queries else ""
        parts = [f"prefill of {self.prefill.requests}{tokens}"] if self.prefill.requests else []
        parts += [f"decode of {self.decode.requests}"] if self.decode.requests else []
        return " and ".join(parts) or "execute_model"


def read_step(name: str) -> EngineStep | None:
    """What an annotation says of its step; `None` where it is not an engine's.

    >>> read_step("execute_context_2(6144)_generation_3(3)").label
    'prefill of 2 (6,144 tokens) and decode of 3'
    >>> read_step("step[DECODE bs=64 g_sq=64 g_sqsq=64 g_sqsk=131072 g_sk=131072]").decode.keys
    131072
    >>> read_step("forward") is None
    True
    """
    if found := _VLLM.match(name):
        return EngineStep(_vllm(found[1], found[2]), _vllm(found[3], found[4]))
    if found := _SGLANG.match(name):
        return _sglang(found[1], found[2])
    if found := _ATOM.match(name):
        values = _values(found[2])
        tokens = _tokens(values.get("bs", 0), values.get("tok", 0), values, "")
        return EngineStep(prefill=tokens) if found[1] == "prefill" else EngineStep(decode=tokens)
    return EngineStep() if re.match(STEP, name) else None


def _vllm(requests: str, inside: str) -> Tokens:
    sums = _SUMS.match(inside)
    if sums:
        return Tokens(int(requests), *map(int, sums.groups()))
    queries = int(inside) if inside.isdigit() else 0
    return Tokens(int(requests), queries, None, None, None) if int(requests) else Tokens()


def _sglang(mode: str, body: str) -> EngineStep:
    values = _values(body)
    size = values.get("bs", 0)
    context = _tokens(values.get("c", size), values.get("c_sq", values.get("toks", 0)), values, "c_")
    if mode == "EXTEND":
        return EngineStep(prefill=context)
    if mode == "DECODE":
        return EngineStep(decode=_tokens(size, values.get("g_sq", size), values, "g_"))
    running = values.get("g", 0)
    return EngineStep(context, _tokens(running, values.get("g_sq", running), values, "g_"))


def _tokens(requests: int, queries: int, values: dict[str, int], prefix: str) -> Tokens:
    return Tokens(requests, queries, *(values.get(f"{prefix}{name}") for name in ("sk", "sqsq", "sqsk")))


def _values(body: str) -> dict[str, int]:
    """`bs=117/128` counts what was served, not what the graph was padded to."""
    return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", body)}
