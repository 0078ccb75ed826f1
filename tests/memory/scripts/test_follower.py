"""What is found in a script, and that nothing stays in torch; all in this process."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from pyrometer.memory.private.stacks import is_clear, top_dispatch_mode
from pyrometer.memory.scripts.compiling import CompileWatch
from pyrometer.memory.scripts.findings import FollowSettings
from pyrometer.memory.scripts.follower import MemoryFollower, follow
from pyrometer.record import to_dict

from .conftest import HEAD, PARAMETER_BYTES, FollowedHere

Follow = Callable[..., FollowedHere]

TRAIN = """
optimizer = torch.optim.AdamW(model.parameters())
losses = []
for _ in range(STEPS):
    x, y = torch.randn(32, 64), torch.randint(0, 10, (32,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
"""
LEAK = TRAIN + "    losses.append(loss)\n"


def train(steps: int, code: str = TRAIN) -> str:
    return code.replace("STEPS", str(steps))


@pytest.fixture(autouse=True)
def nothing_stays() -> object:
    codes = torch.compile.__code__, torch.nn.Module.__call__.__code__
    disable = torch.autograd.graph.disable_saved_tensors_hooks
    yield
    assert is_clear()
    assert (torch.compile.__code__, torch.nn.Module.__call__.__code__) == codes
    assert torch.autograd.graph.disable_saved_tensors_hooks is disable


def test_parameters_gradients_and_optimizer_state_are_exact(follow_here: Follow) -> None:
    profile = follow_here(train(4)).profile
    # AdamW has two moments and a number of steps, of four bytes, per parameter.
    assert profile.ledger_bytes["parameters"] == PARAMETER_BYTES
    assert profile.ledger_bytes["gradients"] == PARAMETER_BYTES
    assert profile.ledger_bytes["optimizer"] == 2 * PARAMETER_BYTES + 4 * 4
    assert profile.peak_phase == "optimizer"
    assert sum(profile.ledger_bytes.values()) == profile.peak_bytes
    assert profile.ledger_bytes["unknown"] == 0


def test_a_dataset_in_memory_counts_as_inputs(follow_here: Follow) -> None:
    code = """
data = torch.utils.data.TensorDataset(torch.randn(320, 64))
other = torch.randn(100)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for (x,) in torch.utils.data.DataLoader(data, batch_size=80):
    model(x).sum().backward()
    optimizer.step()
"""
    ledger = follow_here(code).profile.ledger_bytes
    assert (ledger["inputs"], ledger["unknown"]) == (4 * 64 * (320 + 80), 400)


def test_lines_and_modules_hold_the_peak(follow_here: Follow) -> None:
    profile = follow_here(train(2)).profile
    made = next(held for held in profile.at_peak if held.category == "parameters")
    assert made.bytes == PARAMETER_BYTES
    assert made.source is not None
    assert "nn.Sequential" in made.source
    assert set(profile.by_module) == {"0", "2"}


def test_phases_are_those_of_a_workload(follow_here: Follow) -> None:
    names = [span.name for span in follow_here(train(2)).profile.timeline.phases]
    assert names[:5] == ["setup", "forward", "backward", "rest", "optimizer"]
    assert names[5:] == ["data", "forward", "backward", "rest", "optimizer"]


def test_a_leak_is_named_by_line_and_holder(follow_here: Follow) -> None:
    leak = follow_here(train(40, LEAK), leak_steps=30).leak
    assert leak.verdict == "leak"
    assert leak.num_steps == 30
    (site,) = leak.sites
    assert site.holder is not None
    assert site.holder.startswith("losses")
    assert site.source == "loss = nn.functional.cross_entropy(model(x), y)"
    assert leak.bytes_per_step == 4


def test_an_epoch_that_ends_is_a_time_to_ask(follow_here: Follow) -> None:
    inside = """
def main():
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    kept = []
    for x in torch.utils.data.DataLoader(torch.randn(37, 64), batch_size=1):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        kept.append(x)
main()
"""
    leak = follow_here(inside, leak_steps=None).leak
    assert leak.verdict == "leak"
    assert leak.num_steps == 35


@pytest.mark.slow
def test_a_clean_loop_is_stable(follow_here: Follow) -> None:
    leak = follow_here(train(45), leak_steps=None).leak
    assert (leak.verdict, leak.sites) == ("stable", [])


def test_no_steps_are_watched_when_none_are_asked_for(follow_here: Follow) -> None:
    assert follow_here(train(6), leak_steps=0).profile.leak is None


def test_inference_without_an_optimizer(follow_here: Follow) -> None:
    code = """
kept = []
with torch.inference_mode():
    for _ in range(30):
        kept.append(model(torch.randn(32, 64)))
"""
    here = follow_here(code, leak_steps=None)
    assert here.profile.ledger_bytes["parameters"] == PARAMETER_BYTES
    assert here.profile.ledger_bytes["gradients"] == 0
    assert here.profile.peak_phase == "forward"
    assert here.leak.verdict == "leak"
    assert here.leak.bytes_per_step == 32 * 10 * 4


def test_a_script_without_steps_is_told_as_a_whole(follow_here: Follow) -> None:
    profile = follow_here("a = torch.ones(1000)\nb = a + a\ndel a", head="import torch\n").profile
    assert (profile.peak_bytes, profile.peak_phase) == (8000, "run")
    assert "no steps were seen: this is the memory of the whole run" in profile.notes


def test_a_script_that_ends_in_its_first_step(follow_here: Follow, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        follow_here("model(torch.randn(8, 64)).sum().backward()\n1 / 0")
    assert (tmp_path / "memory.json").exists()


def test_validation_before_training_does_not_count(follow_here: Follow) -> None:
    code = """
with torch.no_grad():
    for x in torch.utils.data.DataLoader(torch.randn(64, 64), batch_size=8):
        model(x)
"""
    profile = follow_here(code + train(3)).profile
    assert profile.ledger_bytes["optimizer"] == 2 * PARAMETER_BYTES + 4 * 4
    made = next(held for held in profile.at_peak if held.category == "parameters")
    assert made.source is not None
    assert "nn.Sequential" in made.source


def test_two_optimizers_make_one_step(follow_here: Follow) -> None:
    code = """
critic = nn.Linear(10, 1)
first, second = torch.optim.Adam(model.parameters()), torch.optim.Adam(critic.parameters())
for _ in range(3):
    for one in (first, second):
        one.zero_grad()
        critic(model(torch.randn(4, 64))).sum().backward()
        one.step()
"""
    names = [span.name for span in follow_here(code).profile.timeline.phases]
    assert names.count("optimizer") == 4


def test_tensors_that_an_optimizer_trains_without_a_module_are_parameters(follow_here: Follow) -> None:
    code = """
weight = torch.zeros(64, requires_grad=True)
optimizer = torch.optim.SGD([weight], 0.1)
for _ in range(3):
    (torch.randn(4, 64) @ weight).sum().backward()
    optimizer.step()
"""
    ledger = follow_here(code).profile.ledger_bytes
    assert (ledger["parameters"], ledger["gradients"], ledger["master"]) == (256, 256, 0)


def test_transforms_that_refuse_saved_tensor_hooks_work(follow_here: Follow) -> None:
    code = """
def loss(x):
    return model(x).sum()
for _ in range(4):
    gradient = torch.func.grad(loss)(torch.ones(64))
    each = torch.func.vmap(torch.func.grad(loss))(torch.ones(3, 64))
"""
    here = follow_here(code + train(3))
    torch.testing.assert_close(here.variables["each"][0], here.variables["gradient"])
    assert here.profile.ledger_bytes["parameters"] == PARAMETER_BYTES


def test_the_scripts_own_modes_and_hooks_see_the_same(follow_here: Follow) -> None:
    code = """
from torch.utils.flop_counter import FlopCounterMode
packed = []
with FlopCounterMode(display=False) as flops, torch.autograd.graph.saved_tensors_hooks(
    lambda t: packed.append(1) or t.detach(), lambda t: t
):
"""
    inside = "".join(f"    {line}\n" for line in train(5).splitlines())
    here = follow_here(code + inside + train(3))
    plain: dict[str, object] = {}
    exec(compile(HEAD + code + inside + train(3), "script.py", "exec"), plain)
    assert len(here.variables["packed"]) == len(plain["packed"]) > 0  # type: ignore[arg-type]
    counted, expected = here.variables["flops"], plain["flops"]
    assert counted.get_total_flops() == expected.get_total_flops() > 0  # type: ignore[attr-defined]
    assert torch.equal(here.variables["loss"], plain["loss"])  # type: ignore[arg-type]


def test_a_mode_around_everything_is_said(follow_here: Follow) -> None:
    code = "from torch.utils.flop_counter import FlopCounterMode\nwith FlopCounterMode(display=False):\n"
    inside = "".join(f"    {line}\n" for line in [*train(5).splitlines(), "    raise KeyError"])
    with pytest.raises(KeyError):
        follow_here(code + inside)


def test_a_fork_takes_nothing_along(tmp_path: Path) -> None:
    settings = FollowSettings(path=str(tmp_path / "memory.json"), name="script.py")
    follower = follow(torch, to_dict(settings))
    child = os.fork()
    if child == 0:
        follower.detach()
        clear = top_dispatch_mode() is None and is_clear()
        os._exit(0 if clear else 1)
    _, status = os.waitpid(child, 0)
    assert not is_clear()
    follower.finish()
    assert os.waitstatus_to_exitcode(status) == 0


def test_what_fails_in_us_does_not_reach_the_script(
    follow_here: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("ours")

    monkeypatch.setattr(MemoryFollower, "_act", fails)
    here = follow_here(train(3))
    assert here.variables["loss"].item() > 0
    assert here.found.notes == ["following the script failed: RuntimeError: ours"]


def test_operators_that_cannot_be_followed_are_passed_over(
    follow_here: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyrometer.memory.recording.recorder import AllocationRecorder

    plain = AllocationRecorder.saw

    def fails(recorder: AllocationRecorder, results: object, arguments: object, operator: object) -> None:
        if "cross" in str(operator) or "nll" in str(operator):
            raise NotImplementedError("no storage")
        plain(recorder, results, arguments, operator)

    monkeypatch.setattr(AllocationRecorder, "saw", fails)
    profile = follow_here(train(3)).profile
    assert profile.ledger_bytes["parameters"] == PARAMETER_BYTES
    assert any("could not be followed: NotImplementedError: no storage" in note for note in profile.notes)


def test_too_much_is_cut_off(follow_here: Follow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyrometer.memory.scripts.recording.MOST_EVENTS", 50)
    profile = follow_here("for _ in range(200):\n    x = torch.ones(8) + 1\n").profile
    assert any("only the first 50 allocations" in note for note in profile.notes)


def test_a_compile_function_that_a_framework_has_wrapped_is_heard_of(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, told = torch.compile, []
    monkeypatch.setattr(torch, "compile", functools.wraps(plain)(functools.partial(plain)))
    watch = CompileWatch(lambda: told.append("compile"))
    try:
        torch.compile(torch.nn.Identity(), backend="eager")
    finally:
        watch.remove()
    assert (told, watch.blind) == (["compile"], False)
