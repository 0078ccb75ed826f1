from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import torch

from pyrometer.compiler.inspection.script import inspect_script
from pyrometer.errors import TargetError


@pytest.fixture
def script(tmp_path: Path):
    def write(text: str) -> str:
        path = tmp_path / "train.py"
        path.write_text(textwrap.dedent(text))
        return str(path)

    return write


@pytest.mark.slow
def test_a_script_is_reported_as_it_runs(script, capfd):
    inspected_script = inspect_script(
        [
            script(
                """
                import sys, torch

                model = torch.compile(torch.nn.Linear(4, 1), backend="eager")
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                for size in (4, 4, 5, 6):
                    model(torch.ones(size, 4)).sum().backward()
                    optimizer.step()
                    optimizer.zero_grad()
                print("argument", sys.argv[1])
                """
            ),
            "--fast",
        ],
        strict=True,
    )

    assert capfd.readouterr().out == "argument --fast\n"
    assert inspected_script.observed.exit_code == 0
    assert inspected_script.report.graphs == 2
    assert len(inspected_script.report.recompiles) == 1
    assert inspected_script.report.cost.first_call_s == inspected_script.observed.first_step_s
    assert inspected_script.report.cost.eager_steady_s is None
    assert inspected_script.divergence == []
    assert inspected_script.log.source != "process"


def steps_that_compile(when: str) -> str:
    return f"""
        import torch

        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for number in range(12):
            if {when}:
                made = torch.compile(lambda x: x * number, backend="eager", dynamic=False)
                torch._dynamo.reset()
                made(torch.ones(number + 2))
            model(torch.ones(3, 4)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        """


@pytest.mark.exhaustive
def test_steps_that_compile_until_the_end_are_not_steady(script):
    inspected_script = inspect_script([script(steps_that_compile("True"))])

    assert inspected_script.report.cost.steady_s is None
    assert any("last third" in line for line in inspected_script.report.unavailable)


@pytest.mark.exhaustive
def test_steps_are_steady_when_the_last_third_compiles_nothing(script):
    inspected_script = inspect_script([script(steps_that_compile("number < 6"))])

    assert inspected_script.report.graphs == 6
    assert 0 < inspected_script.report.cost.steady_s < inspected_script.report.cost.compile_s / 6


def test_a_script_that_compiles_nothing_says_so(script):
    inspected_script = inspect_script([script("print('hello')")])

    assert inspected_script.report.graphs == 0
    assert any("compiled nothing" in note for note in inspected_script.report.notes)


@pytest.mark.slow
def test_a_script_that_fails_keeps_what_was_compiled_and_other_processes_and_users_traces_are_told(
    script, tmp_path, monkeypatch
):
    users = tmp_path / "own"
    monkeypatch.setenv("TORCH_TRACE", str(users))
    inspected_script = inspect_script(
        [
            script(
                """
                import subprocess, sys, torch

                if len(sys.argv) == 1:
                    subprocess.run([sys.executable, __file__, "child"], check=False)
                torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
                raise SystemExit(3)
                """
            )
        ]
    )

    assert inspected_script.observed.exit_code == 3
    assert inspected_script.report.graphs == 1
    assert any("2 processes compiled something" in note for note in inspected_script.report.notes)
    assert {file.suffix for file in users.iterdir()} == {".log"}


def test_what_is_no_script_is_refused():
    with pytest.raises(TargetError):
        inspect_script(["missing.py"])


def test_nothing_is_left_behind_in_this_process(script):
    before = torch.is_grad_enabled(), dict(__import__("os").environ)
    inspect_script([script("pass")])

    assert (torch.is_grad_enabled(), dict(__import__("os").environ)) == before


@pytest.mark.exhaustive
@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed")
def test_ranks_that_decide_differently_are_told_apart(script):
    inspected_script = inspect_script(
        [
            script(
                """
                import os, subprocess, sys, torch
                import torch.distributed as dist

                rank = int(os.environ.setdefault("RANK", "0"))
                if rank == 0:
                    other = os.environ | {"RANK": "1"}
                    child = subprocess.Popen([sys.executable, *sys.argv], env=other)
                store = os.path.join(os.path.dirname(__file__), "store")
                dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)

                @torch.compile(backend="eager")
                def step(x):
                    y = x * 2
                    if dist.get_rank() == 1:
                        torch._dynamo.graph_break()
                    return y + 1

                step(torch.ones(2))
                dist.barrier()
                if rank == 0:
                    child.wait()
                dist.destroy_process_group()
                """
            )
        ]
    )

    assert inspected_script.log.entries[0].rank == 0
    assert any(line.startswith("graph breaks") and "rank 1" in line for line in inspected_script.divergence)
    assert any("graph breaks" in note for note in inspected_script.report.notes)
