"""Operations that stayed out of graphs: known, or not claimed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from pyrometer.compiler.breaks.frames import compiled_frames


@pytest.mark.parametrize(
    ("name", "lost"),
    [
        ("print_between", 0),
        ("data_dependent_branch", 0),
        ("asks_for_a_break", 0),
        ("item", 1),
        ("c_call", None),
        ("calls_disabled", None),
        ("break_in_loop", None),
        ("break_in_try", None),
    ],
)
def test_only_what_a_break_is_by_nature_is_claimed(
    name: str, lost: int | None, programs: ModuleType, see: Callable[..., Any]
) -> None:
    seen = see(getattr(programs, name), torch.ones(4))
    assert [root.lost_ops for root in seen.roots] == [lost]


def test_several_breaks_on_one_line_lose_one_operation_each(watch: Callable[..., Any], counting: Any) -> None:
    def program(x, y):
        x, y = x[x > 0], y[y > 0]
        return x.sum() + y.sum()

    compiled = torch.compile(program, backend=counting, dynamic=False)

    def work():
        for size in (3, 4):
            compiled(torch.ones(size), torch.ones(size))

    (graph_break,) = watch(work).breaks
    assert (graph_break.id, graph_break.sites, graph_break.lost_ops) == ("gb0036", 2, 2)
    assert graph_break.compile_ids == ["0/0", "1/0", "0/1", "1/1"]


class Masking(torch.nn.Module):
    def forward(self, x):
        x, y = x[x > 0], x[x >= 0]
        return x.sum() + y.sum()


class Around(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = Masking(), Behind()

    def forward(self, x):
        return self.before(x + 1) * 2 + self.after(x)


class Behind(torch.nn.Module):
    def forward(self, x):
        return x * x.sum().item()


def test_methods_of_one_name_in_one_file_are_told_apart(see: Callable[..., Any], counting: Any) -> None:
    seen = see(Around(), torch.ones(3), backend=counting)
    assert [(graph_break.id, graph_break.sites, graph_break.lost_ops) for graph_break in seen.breaks] == [
        ("gb0036", 2, 2),
        ("gb0124", 1, 1),
    ]
    assert seen.counts.graphs == counting.graphs


@pytest.mark.slow
def test_eager_modules_around_a_compiled_one_are_not_laid_to_its_breaks(watch: Callable[..., Any]) -> None:
    compiled = torch.compile(Around(), backend="eager")
    model = torch.nn.Sequential(torch.nn.Identity(), compiled)
    assert [graph_break.left_eager for graph_break in watch(lambda: model(torch.ones(3))).breaks] == [[], []]


def test_after_a_reset_a_line_holds_no_more_breaks_than_before(
    programs: ModuleType, watch: Callable[..., Any]
) -> None:
    def work():
        for _ in range(2):
            torch._dynamo.reset()
            torch.compile(programs.item, backend="eager")(torch.ones(3))

    (graph_break,) = watch(work).breaks
    assert (graph_break.count, graph_break.sites, graph_break.lost_ops) == (2, 1, 1)


class Breaking(torch.nn.Module):
    def forward(self, x):
        y = x.sin()
        print(end="")
        return y + 1


def test_a_break_in_a_sequential_leaves_torchs_own_parts_of_it_eager(
    see: Callable[..., Any], counting: Any
) -> None:
    parts = torch.nn.Sequential(Breaking(), torch.nn.Linear(3, 3), torch.nn.ReLU())

    def program(x):
        return parts(x * 2) + 1

    seen = see(program, torch.ones(2, 3), backend=counting)
    assert sum(counting.num_ops) == 4  # x * 2, sin, + 1 and + 1: neither linear nor relu
    assert [Path(place.file).name for place in seen.only.left_eager] == ["container.py"]
    assert seen.only.lost_ops is None


def test_modules_of_the_users_own_leave_nothing_eager(see: Callable[..., Any], counting: Any) -> None:
    class Whole(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.breaking, self.layer = Breaking(), torch.nn.Linear(3, 3)

        def forward(self, x):
            return self.layer(self.breaking(x * 2))

    seen = see(Whole(), torch.ones(2, 3), backend=counting)
    assert sum(counting.num_ops) == 4  # all of them
    assert (seen.only.left_eager, seen.only.lost_ops) == ([], 0)


def test_a_backends_failure_is_not_laid_to_a_break(see: Callable[..., Any]) -> None:
    def failing(_module, _inputs):
        raise ValueError("no code")

    def program(x):
        y = x.sin() + 1
        print(end="")
        return y

    seen = see(program, torch.ones(3), backend=failing, raises=Exception)
    assert seen.only.lost_ops == 0
    (skip,) = seen.skips
    assert (skip.kind, skip.num_breaks, skip.lost_ops) == ("raised", 0, 2)


@pytest.mark.exhaustive
def test_printed_graphs_count_as_many_operations_as_the_backend_gets(
    programs: ModuleType, watch: Callable[..., Any], counting: Any
) -> None:
    def attends(x):
        y = torch.nn.functional.scaled_dot_product_attention(x, x, x)
        with torch.no_grad():
            z = y[..., 1:] + x.shape[0]
        return torch.stack([z, z])

    layer = torch.nn.TransformerEncoderLayer(8, 2, batch_first=True)
    works = [(attends, (2, 2, 4, 8)), (layer, (2, 3, 8)), (programs.Detector(), (1, 3, 8, 8))]

    def work():
        for program, shape in works:
            torch.compile(program, backend=counting)(torch.ones(shape))

    compiled = compiled_frames(watch(work).log)
    assert [made.num_ops for made in compiled.values() if made.graphs] == counting.num_ops
    assert max(counting.num_ops) > 10
