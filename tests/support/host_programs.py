"""Samples of programs that were never timed: a program is compiled, and places in it are named by line and operation."""

from __future__ import annotations

import dis
import importlib.util
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import msgspec

from pyrometer.host.samples import HostSamples
from pyrometer.workload.script.startup._pyrometer_inside.host_record import host_record
from pyrometer.workload.script.startup._pyrometer_inside.host_sampler import HostSampler
from pyrometer.workload.script.startup._pyrometer_inside.host_watch import HostWatch

MS = 1_000_000
Frames = list[tuple[CodeType, int]]
Stack = tuple[int, Frames]
Waits = Iterable[tuple[int, Frames, dict[int, Frames]]]


class Program:
    """A file with a program."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = textwrap.dedent(text)
        path.write_text(self.text)
        self.module = _imported(path)

    def line(self, part: str) -> int:
        """The first line that holds this."""
        return next(i for i, line in enumerate(self.text.splitlines(), 1) if part in line)

    def at(self, function: str, part: str, operation: str = "CALL") -> tuple[CodeType, int]:
        """The first instruction of this name in the line that holds this, in a function or one inside of it."""
        code = _codes(self.module)[function]
        return code, instruction(code, self.line(part), operation)


def instruction(code: CodeType, line: int, operation: str) -> int:
    """Offset of the first instruction of a line whose name begins so."""
    return next(
        each.offset
        for each in dis.get_instructions(code)
        if each.positions and each.positions.lineno == line and each.opname.startswith(operation)
    )


def _imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _codes(module: ModuleType) -> dict[str, CodeType]:
    codes = {}
    for value in vars(module).values():
        members = vars(value).values() if isinstance(value, type) else [value]
        for member in members:
            function = getattr(member, "__func__", member)
            todo = [function.__code__] if hasattr(function, "__code__") else []
            while todo:
                code = todo.pop()
                codes[code.co_qualname] = code
                todo += [part for part in code.co_consts if isinstance(part, CodeType)]
    return codes


def samples(
    *stacks: Stack, watch: HostWatch | None = None, steps: int = 1, waits: Waits = (), **more: Any
) -> HostSamples:
    """Samples of steps of a millisecond for each tick; `waits`: where other threads, by number, were while it waited, and how often; `garbage`: of the first
    so many stacks, that they were seen in the garbage collector."""
    sampler = HostSampler(1e-3)
    for times, frames, others in waits:
        beside = [(number, _flat(other)) for number, other in others.items()]
        sampler.waits += [(_flat(frames), beside)] * times
    collecting = more.pop("garbage", 0)
    sampler.samples += [(ticks, i < collecting, _flat(frames)) for i, (ticks, frames) in enumerate(stacks)]
    sampler.looks = sum(ticks for ticks, _ in stacks)
    whole = sampler.looks * MS // steps
    record = host_record(sampler, watch, [whole] * steps, more.pop("bare_ns", []), more.pop("notes", []))
    return msgspec.convert(record | more, HostSamples)


def _flat(frames: Frames) -> list[Any]:
    return [part for frame in frames for part in frame]


def watched(call: Callable[[], Any]) -> HostWatch:
    """A call that was watched."""
    watch = HostWatch()
    watch.begin()
    try:
        call()
    finally:
        watch.end()
    watch.settle()
    return watch
