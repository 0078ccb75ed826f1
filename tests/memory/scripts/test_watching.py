"""The verdict on a script's growth is that of its longest watch, and child processes are no blind spot."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from pyrometer.memory.leaks.answer import UNDECIDED_GROWTH
from pyrometer.memory.profile import LeakReport
from pyrometer.memory.scripts.children import ChildGrowth, ChildLevels
from pyrometer.memory.scripts.watching import _better, _gone, _with_children

from .conftest import FollowedHere

MIB = 2**20
PAGE = os.sysconf("SC_PAGE_SIZE")

LOOP = """
def main():
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    kept = []
    for step in range(STEPS):
        x = torch.randn(8, 64)
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        LINE
main()
"""
CLEARED = "kept.append(x) if len(kept) < 50 else kept.clear()"
FILLED = "kept.append(x) if len(kept) < 100 else kept.__setitem__(step % 100, x)"


def loop(line: str, steps: int) -> str:
    return LOOP.replace("LINE", line).replace("STEPS", str(steps))


@pytest.mark.slow
def test_a_list_that_is_cleared_every_fifty_steps_is_no_leak(
    follow_here: Callable[..., FollowedHere],
) -> None:
    leak = follow_here(loop(CLEARED, 70), leak_steps=None).leak
    assert (leak.verdict, leak.sites) == ("stable", [])
    assert leak.num_steps == 67


@pytest.mark.slow
def test_a_buffer_that_is_full_at_step_hundred_is_no_leak(follow_here: Callable[..., FollowedHere]) -> None:
    leak = follow_here(loop(FILLED, 240), leak_steps=None).leak
    assert leak.verdict in {"stable", "allocator warm-up"}
    assert leak.sites == []


@pytest.mark.slow
def test_a_buffer_that_never_filled_is_not_decided(follow_here: Callable[..., FollowedHere]) -> None:
    leak = follow_here(loop(FILLED, 45), leak_steps=None).leak
    assert (leak.verdict, leak.unbounded) == (UNDECIDED_GROWTH, False)
    assert leak.num_steps == 42


def test_a_list_that_nothing_takes_from_is_a_leak_to_the_end(
    follow_here: Callable[..., FollowedHere],
) -> None:
    leak = follow_here(loop("kept.append(x)", 70), leak_steps=None).leak
    assert leak.verdict == "leak"
    assert leak.num_steps == 67
    assert leak.sites[0].holder is not None
    assert leak.sites[0].holder.startswith("kept")


def report(verdict: str, steps: int) -> LeakReport:
    return LeakReport(verdict=verdict, sentence=f"{verdict}: as told", num_steps=steps)


@pytest.mark.parametrize(
    ("earlier", "later", "verdict"),
    [("leak", "stable", "stable"), ("stable", "leak", "leak"), ("leak", "undecided", "leak")],
)
def test_the_answer_after_most_steps_counts_unless_it_cannot_decide(
    earlier: str, later: str, verdict: str
) -> None:
    assert _better(report(earlier, 24), report(later, 60)).verdict == verdict


def test_what_only_the_end_of_the_script_let_go_was_growth() -> None:
    assert _gone(report("leak", 24), report("stable", 60)).verdict == "leak"
    assert _gone(report("leak", 24), report("stable", 60)).num_steps == 60
    assert _gone(report("stable", 24), report("stable", 60)).verdict == UNDECIDED_GROWTH


@pytest.fixture
def worker(tmp_path: Path) -> Callable[[int], ChildLevels]:
    """Children of this process as the kernel tells of them, where one has grown by so many bytes per step."""

    def after(bytes_per_step: int, steps: int = 20) -> ChildLevels:
        levels = ChildLevels(tmp_path, clock=lambda: 0.0)
        for process, text in ((f"{os.getpid()}/task/1", "77 \n"), ("77", "")):
            (tmp_path / process).mkdir(parents=True, exist_ok=True)
            (tmp_path / process / "children").write_text(text)
        (tmp_path / "77" / "comm").write_text("pt_data_worker\n")
        for step in range(steps):
            pages = (100 * MIB + step * bytes_per_step) // PAGE
            (tmp_path / "77" / "statm").write_text(f"{2 * pages} {pages + 10} 10 1 0 1 0\n")
            levels.read(step)
        return levels

    return after


def test_a_worker_that_grows_is_told(worker: Callable[[int], ChildLevels]) -> None:
    (growth,) = worker(4 * MIB).growths
    assert growth == ChildGrowth("a loader's worker", 18 * 4 * MIB, 18, goes_on=True)
    told = _with_children(report("stable", 60), [growth])
    assert told.verdict == UNDECIDED_GROWTH
    assert "a loader's worker grew by 72.0 MiB over 18 steps" in told.sentence
    assert told.bytes_per_step == 4 * MIB


def test_a_worker_that_does_not_grow_is_a_caveat(worker: Callable[[int], ChildLevels]) -> None:
    told = _with_children(report("stable", 60), worker(0).growths)
    assert told.verdict == "stable"
    assert "tensors there are not seen" in told.notes[0]


def test_without_children_nothing_is_said(tmp_path: Path) -> None:
    levels = ChildLevels(tmp_path, clock=lambda: 0.0)
    levels.read(0)
    plain = report("stable", 60)
    assert msgspec.structs.asdict(_with_children(plain, levels.growths)) == msgspec.structs.asdict(plain)
