"""Levers: each is applied as its `use` says, and has the effect that it promises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from pyrometer.compiler.advice.levers import (
    compile_blocks,
    mark_dynamic,
    preload_cache,
    set_stance,
    share_regions,
)
from pyrometer.compiler.collecting.collector import collect
from pyrometer.compiler.log import CompileLog
from pyrometer.compiler.private.fresh_cache import fresh_cache
from pyrometer.compiler.private.importing import import_compiler

NUM_BLOCKS = 16


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.wide = nn.Linear(16, 32)
        self.narrow = nn.Linear(32, 16)

    def forward(self, x):
        return x + self.narrow(nn.functional.gelu(self.wide(self.norm(x))))


class Net(nn.Module):
    def __init__(self, num_blocks: int = NUM_BLOCKS) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(num_blocks))
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def _compiling(run: Callable[[], Any]) -> tuple[CompileLog, Any]:
    torch._dynamo.reset()
    with collect() as collector, torch.no_grad():
        out = run()
    return collector.log(), out


def _graphs(log: CompileLog) -> int:
    return len(list(log.of("dynamo_output_graph")))


def _uses(log: CompileLog, word: str) -> int:
    return sum(entry.payload.count(word) for entry in log.of("dynamo_output_graph"))


def _has_phase(log: CompileLog, name: str) -> bool:
    return any(f'"{name}"' in entry.payload for entry in log.of("chromium_event"))


@pytest.mark.slow
def test_compile_blocks() -> None:
    model, x = Net(), torch.randn(8, 16)
    with torch.no_grad():
        wanted = model(x)
    whole = _compiling(lambda: torch.compile(model, backend="aot_eager")(x))[0]
    for block in model.blocks:
        block.compile(backend="aot_eager")
    parts, out = _compiling(lambda: model(x))
    torch.testing.assert_close(out, wanted)
    assert (_graphs(whole), _graphs(parts)) == (1, 1)
    assert _uses(whole, "= torch._C._nn.gelu(") >= NUM_BLOCKS * _uses(parts, "= torch._C._nn.gelu(")


@pytest.mark.slow
def test_share_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = Net(), torch.randn(8, 16)
    whole, wanted = _compiling(lambda: torch.compile(model, backend="aot_eager")(x))
    monkeypatch.setattr(Block, "forward", torch.compiler.nested_compile_region(Block.forward))
    shared, out = _compiling(lambda: torch.compile(model, backend="aot_eager")(x))
    torch.testing.assert_close(out, wanted)
    assert _graphs(shared) == 1
    assert _uses(shared, "invoke_subgraph(") >= NUM_BLOCKS
    assert _uses(whole, "= torch._C._nn.gelu(") >= NUM_BLOCKS * _uses(shared, "= torch._C._nn.gelu(")


def test_mark_dynamic() -> None:
    sizes = (3, 5, 8, 13, 21)

    def run(function: Callable[..., Any], *, mark: bool) -> list[torch.Tensor]:
        inputs = [torch.ones(size, 4) for size in sizes]
        if mark:
            for x in inputs:
                torch._dynamo.mark_dynamic(x, 0)
        return [function(x) for x in inputs]

    def f(x):
        return (x * 2).sum(0)

    fixed, wanted = _compiling(lambda: run(torch.compile(f, backend="eager", dynamic=False), mark=False))
    opened, out = _compiling(lambda: run(torch.compile(f, backend="eager"), mark=True))
    assert _graphs(fixed) == len(sizes)
    assert _graphs(opened) == 1
    assert all(torch.equal(one, other) for one, other in zip(out, wanted, strict=True))


def test_set_stance() -> None:
    def f(x):
        return x * 2

    compiled = torch.compile(f, backend="eager", dynamic=False)
    first = torch.ones(2)

    def serve() -> list[torch.Tensor]:
        with torch.compiler.set_stance("eager_on_recompile"):
            return [compiled(torch.ones(size)) for size in (2, 3, 4, 5)]

    free, wanted = _compiling(lambda: [compiled(torch.ones(size)) for size in (2, 3, 4, 5)])
    held, out = _compiling(lambda: (compiled(first), serve())[1])
    assert _graphs(free) == 4
    assert _graphs(held) == 1
    assert all(torch.equal(one, other) for one, other in zip(out, wanted, strict=True))
    with torch.compiler.set_stance("fail_on_recompile"), pytest.raises(RuntimeError, match="recompil"):
        compiled(torch.ones(7))
    after, _ = _compiling(lambda: compiled(torch.ones(9)))
    assert _graphs(after) == 1


@pytest.mark.exhaustive
def test_preload_cache() -> None:
    import_compiler()
    model, x = Net(2), torch.randn(8, 16)
    with fresh_cache():
        cold, wanted = _compiling(lambda: torch.compile(model)(x))
        saved = torch.compiler.save_cache_artifacts()
    with fresh_cache():
        assert torch.compiler.load_cache_artifacts(saved[0]) is not None
        warm, out = _compiling(lambda: torch.compile(model)(x))
    torch.testing.assert_close(out, wanted)
    assert list(cold.of("fx_graph_cache_miss"))
    assert not list(warm.of("fx_graph_cache_miss"))
    assert list(warm.of("fx_graph_cache_hit"))
    # On a CPU the C++ compiler runs again and takes most of the time; what Inductor itself does is saved.
    assert _has_phase(cold, "Scheduler.codegen")
    assert not _has_phase(warm, "Scheduler.codegen")


def test_every_lever_says_what_it_does() -> None:
    for make in (compile_blocks, share_regions, mark_dynamic, set_stance, preload_cache):
        lever = make()
        assert lever.title
        assert lever.why
        assert lever.effect
        compile(lever.sketch, lever.slug, "exec")
