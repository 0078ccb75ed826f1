"""A script that is profiled behaves to the byte as without, and its memory is told."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from representative import standing_for_all

from pyrometer.errors import InputError, TargetError
from pyrometer.memory.profile import MemoryProfile
from pyrometer.memory.scripts.profile import profile_script

from .conftest import HEAD, PARAMETER_BYTES, Both, FollowedHere

RunBoth = Callable[..., Both]
EXAMPLES = Path(__file__).parents[3] / "examples"

TRAIN = """
import os, sys, hashlib
from torch.utils.data import DataLoader, TensorDataset
optimizer = torch.optim.AdamW(model.parameters())
data = TensorDataset(torch.randn(320, 64), torch.randint(0, 10, (320,)))
model.insert(1, nn.Dropout(0.5))
for x, y in DataLoader(data, batch_size=8, shuffle=True):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.17g}")
for parameter in model.parameters():
    print(hashlib.sha256(parameter.detach().numpy().tobytes()).hexdigest())
print(torch.rand(1).item(), sys.argv[1:], __name__, [name for name in os.environ if "PYROMETER" in name])
print(len(optimizer._optimizer_step_pre_hooks), torch.compile.__code__.co_name)
"""


def names_of(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(code, names)
    return names


def forget_compiled() -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()


def assert_same(both: Both) -> None:
    assert both.output == (both.plain.stdout, both.plain.stderr)
    assert both.memory.exit_code == (
        both.plain.returncode if both.plain.returncode >= 0 else 128 - both.plain.returncode
    )


@pytest.mark.slow
def test_training_is_bitwise_the_same(run_both: RunBoth) -> None:
    both = run_both(TRAIN, "--epochs", "1", leak_steps=None)
    assert_same(both)
    assert both.profile.ledger_bytes["parameters"] == PARAMETER_BYTES
    assert both.profile.ledger_bytes["optimizer"] == 2 * PARAMETER_BYTES + 4 * 4
    assert both.profile.leak is not None
    assert both.profile.leak.verdict == "stable"
    assert both.profile.levels.rss_peak_bytes is not None
    assert both.memory.observed.steps_from == "optimizer steps"


LOCAL_LEAK = """
def main():
    optimizer = torch.optim.AdamW(model.parameters())
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(torch.randn(32, 64)), torch.randint(0, 10, (32,)))
        loss.backward()
        optimizer.step()
        losses.append(loss)
    os._exit(7)
import os
main()
"""


@pytest.mark.slow
def test_a_leak_into_a_local_variable_is_found_before_the_function_ends_and_kept_by_os_exit(
    run_both: RunBoth,
) -> None:
    both = run_both(LOCAL_LEAK, leak_steps=None)
    assert_same(both)
    assert both.memory.exit_code == 7
    assert both.profile.leak is not None
    assert both.profile.leak.verdict == "leak"
    assert "losses" in (both.profile.leak.sites[0].holder or "")


ENDS = {
    "exception": "model(torch.ones(1, 64)); raise ValueError('mine')",
    "sys.exit": "import sys; model(torch.ones(1, 64)); sys.exit(3)",
    "sys.exit text": "import sys; model(torch.ones(1, 64)); sys.exit('a message')",
    "interrupt": "model(torch.ones(1, 64)); raise KeyboardInterrupt",
    "signal": "import os; model(torch.ones(1, 64)); os.kill(os.getpid(), 9)",
}


@pytest.mark.slow
@pytest.mark.parametrize("how", standing_for_all({how: how for how in ENDS}, "exception", "signal"))
def test_a_script_ends_as_without_us(how: str, run_both: RunBoth) -> None:
    both = run_both(ENDS[how])
    assert_same(both)
    killed = how == "signal"
    assert both.profile.ledger_bytes["parameters"] == (0 if killed else PARAMETER_BYTES)
    assert any("no memory was recorded" in note for note in both.profile.notes) == killed


def test_a_script_without_torch(run_both: RunBoth) -> None:
    both = run_both("print('hello')", head="")
    assert_same(both)
    assert both.profile.peak_bytes == 0
    assert both.profile.notes == [
        "no memory was recorded: the script ended before its first steps did",
        "no steps: the script never imported torch",
    ]


def test_a_python_without_pyrometer_runs_the_script(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "torch.py").write_text("print('a torch')\n")
    (tmp_path / "pyrometer.py").write_text("raise ImportError('no pyrometer here')\n")
    script = tmp_path / "script.py"
    script.write_text("import torch\nprint('done')\n")
    memory = profile_script([str(script)])
    assert capfd.readouterr().out == "a torch\ndone\n"
    assert memory.exit_code == 0
    assert "memory was not followed: ImportError: no pyrometer here" in memory.profile.notes


def test_what_cannot_be_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="no such file"):
        profile_script([str(tmp_path / "none.py")])
    with pytest.raises(InputError, match="leak_steps: got -1"):
        profile_script([sys.executable], leak_steps=-1)


def test_an_ended_script_has_the_exit_code_of_a_shell(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import os\nos.kill(os.getpid(), {int(signal.SIGTERM)})\n")
    assert profile_script([str(script)]).exit_code == 128 + signal.SIGTERM


@pytest.mark.slow
def test_processes_and_threads_of_the_script_are_left_alone(run_both: RunBoth) -> None:
    code = """
import threading
from torch.utils._python_dispatch import _len_torch_dispatch_stack
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 32
    def __getitem__(self, index):
        hooks = len(torch.nn.modules.module._global_forward_pre_hooks)
        return torch.full((64,), float(index)), _len_torch_dispatch_stack() + hooks
def think():
    for _ in range(20):
        other(torch.ones(2, 16)).sum().backward()
other = nn.Linear(16, 16)
thread = threading.Thread(target=think)
thread.start()
optimizer = torch.optim.Adam(model.parameters())
seen = set()
for x, entered in torch.utils.data.DataLoader(Data(), batch_size=4, num_workers=2):
    seen |= set(entered.tolist())
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
thread.join()
print(seen, [round(p.sum().item(), 1) for p in model.parameters()])  # sums of floats differ in their last digits
"""
    both = run_both(code)
    assert_same(both)
    assert both.plain.stdout.startswith("{0}")
    assert both.profile.ledger_bytes["parameters"] == PARAMETER_BYTES


COMPILED = """
optimizer = torch.optim.AdamW(model.parameters())
FUNCTION
kept = []
for _ in range(36):
    x, y = torch.randn(32, 64), torch.randint(0, 10, (32,))
    optimizer.zero_grad()
    loss = step(x, y)
    loss.backward()
    optimizer.step()
    kept.append(x)
from torch._dynamo.utils import counters
print(f"{loss.item():.17g}", dict(counters["frames"]), dict(counters["stats"]))
"""
COMPILED_AS = {
    "function": """
@torch.compile(backend="aot_eager")
def step(x, y):
    return nn.functional.cross_entropy(model(x), y)
""",
    "module": """
compiled = torch.compile(model, backend="aot_eager")
def step(x, y):
    return nn.functional.cross_entropy(compiled(x), y)
""",
    "in place": """
model.compile(backend="aot_eager")
def step(x, y):
    return nn.functional.cross_entropy(model(x), y)
""",
}


def assert_is_told(profile: MemoryProfile) -> None:
    assert profile.source.startswith("the allocator's events")
    assert profile.ledger_bytes["parameters"] == PARAMETER_BYTES
    assert profile.ledger_bytes["gradients"] == PARAMETER_BYTES
    assert profile.ledger_bytes["optimizer"] == 2 * PARAMETER_BYTES + 4 * 4
    assert profile.leak is not None
    assert profile.leak.verdict == "leak"


@pytest.mark.slow
@pytest.mark.parametrize("how", standing_for_all({how: how for how in COMPILED_AS}, "function"))
def test_compiled_code_runs_compiled(
    how: str, follow_here: Callable[..., FollowedHere], capfd: pytest.CaptureFixture[str]
) -> None:
    code = COMPILED.replace("FUNCTION", COMPILED_AS[how])
    forget_compiled()
    exec(code, {"__name__": "plain"} | names_of(HEAD))
    plain = capfd.readouterr().out
    forget_compiled()
    followed = follow_here(code, leak_steps=30)
    assert capfd.readouterr().out == plain
    assert_is_told(followed.profile)
    assert followed.leak.sites[0].holder is not None
    assert followed.leak.sites[0].holder.startswith("kept")


@pytest.mark.slow
@pytest.mark.exhaustive  # few scripts profile themselves
def test_the_scripts_own_profiler_has_precedence(run_both: RunBoth) -> None:
    code = COMPILED.replace("FUNCTION", COMPILED_AS["function"])
    inside = code.replace(
        "for _ in range(36):",
        "own = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])\nfor number in range(8):\n"
        "    if number in {2, 6}: (own.start if number == 2 else own.stop)()",
    )
    events = "print(sum(event.name == 'aten::randn' for event in own.events()))\n"
    both = run_both(inside + events)
    clock = re.compile(r"USDT:.*\n")
    assert both.output[0] == both.plain.stdout
    assert clock.sub("", both.output[1]) == clock.sub("", both.plain.stderr)
    assert both.memory.exit_code == 0


@pytest.mark.slow
@pytest.mark.exhaustive  # a whole training, as the first here
def test_an_example_as_users_run_it(run_both: RunBoth) -> None:
    few = ("--epochs", "1", "--batch-size", "16", "--train-size", "752", "--val-size", "64")
    both = run_both(EXAMPLES / "cnn_classifier.py", *few, leak_steps=None)
    seconds = re.compile(r"\(\d+\.\ds\)")
    assert seconds.sub("", both.output[0]) == seconds.sub("", both.plain.stdout)
    assert both.memory.exit_code == 0
    ledger = both.profile.ledger_bytes
    buffers = sum(2 * 4 * width + 8 for width in (16, 16, 32, 32, 64, 64))
    # SGD's momentum is as large as the parameters; statistics of batch norm are buffers without.
    assert ledger["optimizer"] == ledger["parameters"] - buffers
    assert both.profile.peak_phase in {"forward", "backward"}
    assert ledger["unknown"] <= 0.03 * both.profile.peak_bytes
    assert both.profile.leak is not None
    assert both.profile.leak.verdict in {"stable", "allocator warm-up"}
