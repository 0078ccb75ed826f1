"""Levers: each is applied, has the effect that it promises, and leaves nothing behind."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from pyrometer.compiler.advice import levers
from pyrometer.compiler.advice.regions import repeated_blocks
from pyrometer.compiler.collecting.collector import collect
from pyrometer.compiler.log import CompileLog
from pyrometer.compiler.private.fresh_cache import fresh_cache
from pyrometer.compiler.private.importing import import_compiler
from pyrometer.errors import InputError

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


def _timed(run: Callable[[], Any]) -> tuple[float, CompileLog, Any]:
    torch._dynamo.reset()
    with collect() as collector, torch.no_grad():
        start = time.perf_counter()
        out = run()
        seconds = time.perf_counter() - start
    return seconds, collector.log(), out


def _graphs(log: CompileLog) -> int:
    return len(list(log.of("dynamo_output_graph")))


def _uses(log: CompileLog, word: str) -> int:
    return sum(entry.payload.count(word) for entry in log.of("dynamo_output_graph"))


def _has_phase(log: CompileLog, name: str) -> bool:
    return any(f'"{name}"' in entry.payload for entry in log.of("chromium_event"))


def test_compile_blocks() -> None:
    model, x = Net(), torch.randn(8, 16)
    with torch.no_grad():
        wanted = model(x)
    _timed(lambda: torch.compile(Net(2), backend="aot_eager")(x))  # what only the first compilation costs
    whole_s, whole, _ = _timed(lambda: torch.compile(model, backend="aot_eager")(x))
    with levers.blocks_compiled(model, backend="aot_eager") as names:
        parts_s, parts, out = _timed(lambda: model(x))
    torch.testing.assert_close(out, wanted)
    assert len(names) == NUM_BLOCKS
    assert (_graphs(whole), _graphs(parts)) == (1, 1)
    assert _uses(whole, "= torch._C._nn.gelu(") >= NUM_BLOCKS * _uses(parts, "= torch._C._nn.gelu(")
    assert whole_s > 1.5 * parts_s  # measured: 3 to 5
    _, after, _ = _timed(lambda: model(x))
    assert _graphs(after) == 0


def test_share_regions() -> None:
    model, x = Net(), torch.randn(8, 16)
    forward = Block.forward
    _, whole, wanted = _timed(lambda: torch.compile(model, backend="aot_eager")(x))
    with levers.regions_shared(model):
        assert Block.forward is not forward
        _, shared, out = _timed(lambda: torch.compile(model, backend="aot_eager")(x))
    assert Block.forward is forward
    torch.testing.assert_close(out, wanted)
    assert _graphs(shared) == 1
    assert _uses(shared, "invoke_subgraph(") >= NUM_BLOCKS
    assert _uses(whole, "= torch._C._nn.gelu(") >= NUM_BLOCKS * _uses(shared, "= torch._C._nn.gelu(")


def test_an_inherited_forward_is_inherited_again() -> None:
    class Derived(Block):
        pass

    with levers.regions_shared(nn.Sequential(Derived(), Derived())):
        assert "forward" in vars(Derived)
    assert "forward" not in vars(Derived)


def test_blocks_run_eagerly_again_after_a_failure() -> None:
    model = Net(2)
    with pytest.raises(KeyError), levers.blocks_compiled(model, backend="eager"):
        raise KeyError
    _, log, _ = _timed(lambda: model(torch.randn(2, 16)))
    assert _graphs(log) == 0


def test_mark_dynamic() -> None:
    sizes = (3, 5, 8, 13, 21)

    def run(function: Callable[..., Any], *, mark: bool) -> list[torch.Tensor]:
        dims = {"x": [0]} if mark else {}
        return [function(levers.marked({"x": torch.ones(size, 4)}, dims)["x"]) for size in sizes]

    def f(x):
        return (x * 2).sum(0)

    _, fixed, wanted = _timed(lambda: run(torch.compile(f, backend="eager", dynamic=False), mark=False))
    _, opened, out = _timed(lambda: run(torch.compile(f, backend="eager"), mark=True))
    assert _graphs(fixed) == len(sizes)
    assert _graphs(opened) == 1
    assert all(torch.equal(one, other) for one, other in zip(out, wanted, strict=True))


def test_marks_do_not_stick_to_the_caller_s_tensor() -> None:
    x = torch.ones(3, 4)
    levers.marked({"x": x}, {"x": [-1]})
    assert not hasattr(x, "_dynamo_dynamic_indices")


@pytest.mark.parametrize("dims", [{"x": [2]}, {"y": [0]}])
def test_a_dimension_that_is_not_there_is_refused(dims: dict[str, list[int]]) -> None:
    with pytest.raises(InputError, match="mark"):
        levers.marked({"x": torch.ones(3, 4)}, dims)


def test_set_stance() -> None:
    def f(x):
        return x * 2

    compiled = torch.compile(f, backend="eager", dynamic=False)
    first = torch.ones(2)

    def serve() -> list[torch.Tensor]:
        with levers.stance("eager_on_recompile"):
            return [compiled(torch.ones(size)) for size in (2, 3, 4, 5)]

    _, free, wanted = _timed(lambda: [compiled(torch.ones(size)) for size in (2, 3, 4, 5)])
    _, held, out = _timed(lambda: (compiled(first), serve())[1])
    assert _graphs(free) == 4
    assert _graphs(held) == 1
    assert all(torch.equal(one, other) for one, other in zip(out, wanted, strict=True))
    with levers.stance("fail_on_recompile"), pytest.raises(RuntimeError, match="recompil"):
        compiled(torch.ones(7))
    _, after, _ = _timed(lambda: compiled(torch.ones(9)))
    assert _graphs(after) == 1


def test_a_stance_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="eager_on_recompile"), levers.stance("relaxed"):
        pytest.fail("ran")


@pytest.mark.slow
def test_preload_cache() -> None:
    import_compiler()
    model, x = Net(2), torch.randn(8, 16)
    with fresh_cache():
        _timed(lambda: torch.compile(model)(x))
        artifacts = levers.saved_artifacts()
    with fresh_cache():
        _, cold, wanted = _timed(lambda: torch.compile(model)(x))
    with fresh_cache():
        assert levers.load_artifacts(artifacts)
        _, warm, out = _timed(lambda: torch.compile(model)(x))
    torch.testing.assert_close(out, wanted)
    assert list(cold.of("fx_graph_cache_miss"))
    assert not list(warm.of("fx_graph_cache_miss"))
    assert list(warm.of("fx_graph_cache_hit"))
    # On a CPU the C++ compiler runs again and takes most of the time; what Inductor itself does is saved.
    assert _has_phase(cold, "Scheduler.codegen")
    assert not _has_phase(warm, "Scheduler.codegen")


def test_bytes_that_are_no_artifacts_are_refused() -> None:
    with pytest.raises(InputError, match="5 bytes"):
        levers.load_artifacts(b"bytes")


def test_a_model_without_repetition_is_refused() -> None:
    with pytest.raises(InputError, match="no block is repeated"), levers.blocks_compiled(nn.Linear(2, 2)):
        pytest.fail("ran")


def test_blocks_are_told_apart_by_the_shapes_of_their_parameters() -> None:
    def block(width: int) -> nn.Module:
        return nn.Sequential(nn.Linear(8, width), nn.Linear(width, 8))

    model = nn.Sequential(block(4), block(6), block(4), block(6), block(5))
    assert sorted(repeated_blocks(model)) == [["0", "2"], ["1", "3"]]


def test_every_lever_says_what_it_does_and_is_at_hand_in_this_torch() -> None:
    for lever in levers.compile_levers():
        assert lever.missing is None
        assert lever.title
        assert lever.when
        assert lever.effect
        compile(lever.use, lever.name, "exec")
