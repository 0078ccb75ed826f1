"""Programs that leak and programs that do not, watched from beginning to end; and that watching changes nothing."""

from __future__ import annotations

import functools
import gc
import threading
from collections import deque

import pytest
import torch
from representative import standing_for_all
from torch import nn

import pyrometer as pm
from pyrometer.errors import BudgetExceededError, InputError, UsageError, UserProgramError
from pyrometer.memory.leaks.watch import MemoryWatch, assert_no_leak, watch_memory
from pyrometer.record import from_json, to_json

pytestmark = pytest.mark.slow  # whole watches, after each of which everything that is alive is gone through

STEPS = 36


def leaked(step, **settings):
    report = watch_memory(step, steps=STEPS, **settings)
    assert report.verdict in {"leak", "growing cache"}, report.sentence
    return report, report.sites[0]


def trained(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        loss = model(torch.randn(8, 16)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


class Controller:
    """Keeps what it perceived, with its graph."""

    def __init__(self):
        self.perception = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 16))
        self.history_buffer = []

    def control_step(self, reading):
        features = self.perception(reading)
        self.history_buffer.append({"perception": features})
        return features.detach()


def test_the_robot_controller_is_answered_in_one_line():
    controller = Controller()
    report, site = leaked(lambda: controller.control_step(torch.randn(4, 32)))
    assert site.holder.startswith('controller.history_buffer[…]["perception"]')
    assert site.root == "instance attribute"
    assert site.source == "features = self.perception(reading)"
    assert site.graph_state == "alive"
    assert len(report.sites) == 1
    # what the two layers saved, and the output: the hidden layer before its ReLU is not kept
    assert report.bytes_per_step == 4 * 4 * (32 + 64 + 16)
    assert report.ci == [report.bytes_per_step] * 2
    assert report.sentence.startswith(
        'leak: 1.75 KiB per step stay in controller.history_buffer[…]["perception"]'
    )
    assert "with an autograd graph of 1.50 KiB; out of memory after about" in report.sentence
    assert "\n" not in report.sentence
    assert from_json(type(report), to_json(report)) == report


def test_the_fix_of_the_robot_controller_fixes_it():
    controller = Controller()
    with torch.no_grad():
        controller.history_buffer = deque(maxlen=4)
        report = watch_memory(lambda: controller.control_step(torch.randn(4, 32)), steps=STEPS)
    assert report.verdict in {"stable", "allocator warm-up"}


def test_a_loss_that_is_kept_with_its_graph_is_found_and_item_repairs_it():
    step = trained(nn.Linear(16, 4))
    losses = []
    report, site = leaked(lambda: losses.append(step()))
    assert site.holder == "losses[…]" or site.holder.startswith("losses[…] ")
    assert report.bytes_per_step == 4
    assert site.graph_state == "shell"
    assert watch_memory(lambda: losses.append(step().item()), steps=STEPS).verdict == "stable"


def test_a_running_sum_that_is_never_detached_is_found_by_its_graph():
    step = trained(nn.Linear(16, 4))
    total = {"loss": 0.0}

    def add():
        total["loss"] = total["loss"] + step()

    report, site = leaked(add)
    assert site.nodes_per_step >= 2
    assert 'total["loss"]' in site.holder
    assert "nodes per step" in report.sentence
    assert report.bytes_per_step == 0
    assert report.verdict == "leak"

    def add_figure():
        total["loss"] = total["loss"] + step().item()

    total["loss"] = 0.0
    assert watch_memory(add_figure, steps=STEPS).verdict == "stable"


def test_a_scalar_that_pins_a_large_storage_says_so_and_its_fix_works():
    kept = []

    def step():
        kept.append(nn.functional.mse_loss(torch.randn(64, 64), torch.randn(64, 64)).detach())

    report, site = leaked(step)
    assert report.bytes_per_step == 64 * 64 * 4
    assert ".item()" in site.fix


def test_a_hook_that_keeps_outputs_is_found():
    model, kept = nn.Linear(16, 16), []
    model.register_forward_hook(lambda module, args, output: kept.append(output))
    report, site = leaked(lambda: model(torch.randn(8, 16)))
    assert "kept" in site.holder
    assert site.graph_state == "alive"
    assert report.bytes_per_step >= 2 * 8 * 16 * 4


def test_a_failure_path_that_skips_the_clean_up_is_found_at_its_own_rate():
    in_flight, state = {}, {"step": 0}

    def step():
        state["step"] += 1
        in_flight[state["step"]] = torch.randn(100)
        if state["step"] % 3 == 0:
            return  # as an exception that is caught further up
        del in_flight[state["step"]]

    report, site = leaked(step)
    assert "in_flight" in site.holder
    assert report.bytes_per_step == pytest.approx(400 / 3)
    assert site.period == pytest.approx(3, rel=0.1)


def test_an_unbounded_lru_cache_is_a_growing_cache():
    @functools.cache
    def table(length):
        return torch.ones(length, 8)

    lengths = iter(range(1000))
    report, site = leaked(lambda: table(next(lengths)).sum())
    assert report.verdict == "growing cache"
    assert report.unbounded
    assert "table" in site.holder


def test_a_cache_with_a_bound_that_is_not_reached_is_said_to_be_undecidable():
    kept = deque(maxlen=500)
    report, site = leaked(lambda: kept.append(torch.ones(100) + 1))
    assert report.verdict == "growing cache"
    assert not report.unbounded
    assert site.container == "deque of 36 of at most 500"
    assert "not decidable until it is full, after about 464 more steps" in report.sentence
    assert report.eta_steps is None
    assert_no_leak(lambda: kept.append(torch.ones(100) + 1), steps=STEPS)


def test_a_bound_that_is_reached_is_none():
    kept = deque((torch.ones(100) + 1 for _ in range(30)), maxlen=30)
    assert watch_memory(lambda: kept.append(torch.ones(100) + 1), steps=STEPS).verdict == "stable"


def test_what_a_thread_keeps_is_found_though_its_operators_are_not_seen():
    kept = []

    def step():
        thread = threading.Thread(target=lambda: kept.append(torch.ones(1234)))
        thread.start()
        thread.join()

    report, site = leaked(step)
    assert "kept" in site.holder
    assert report.bytes_per_step == pytest.approx(1234 * 4)
    assert site.file is None
    assert any("another thread" in note for note in report.notes)


class Cycle:
    def __init__(self):
        self.itself = self
        self.tensor = torch.ones(5000) + 1


def test_cycles_are_a_note_while_the_collector_is_on():
    threshold = gc.get_threshold()
    gc.set_threshold(100_000, 1000, 1000)
    try:
        report = watch_memory(lambda: Cycle() and None, steps=STEPS)
    finally:
        gc.set_threshold(*threshold)
    assert report.verdict == "stable"
    assert any("reference cycles: 19.5 KiB per step" in note for note in report.notes)


def test_cycles_are_a_leak_while_the_collector_is_off():
    gc.disable()
    try:
        report, site = leaked(lambda: Cycle() and None)
    finally:
        gc.enable()
    assert report.verdict == "leak"
    assert report.bytes_per_step == 20_000
    assert "Cycle" in site.holder
    assert site.root == "reference cycle"
    assert any("gc.collect() frees" in note for note in report.notes)


def test_gradients_that_are_never_cleared_and_optimizer_state_are_no_leak():
    model = nn.Linear(16, 16)
    optimizer = torch.optim.Adam(model.parameters())

    def step():
        model(torch.randn(4, 16)).sum().backward()
        optimizer.step()

    assert watch_memory(step, steps=STEPS).verdict == "stable"


def test_a_list_that_an_epoch_clears_is_no_leak():
    kept = []

    def step():
        kept.append(torch.ones(50) + 1)
        if len(kept) == 9:
            kept.clear()

    assert watch_memory(step, steps=STEPS).verdict == "stable"


def test_a_training_workload_shows_the_leak_of_its_loss_and_is_restored():
    kept = []

    def loss(output, target):
        kept.append(output)
        return nn.functional.cross_entropy(output, target)

    model = nn.Linear(16, 4)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    work = pm.Training(
        model, loss, torch.optim.Adam(model.parameters()), [(torch.randn(8, 16), torch.randint(0, 4, (8,)))]
    )
    report, site = leaked(work)
    assert "kept" in site.holder
    assert report.bytes_per_step >= 8 * 4 * 4
    assert all(torch.equal(model.state_dict()[name], value) for name, value in before.items())
    assert model.weight.grad is None


def test_an_inference_workload_shows_the_leak_of_its_model():
    class Remembering(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(16, 16)
            self.seen = []

        def forward(self, x):
            self.seen.append(self.layer(x))
            return self.seen[-1]

    report, site = leaked(pm.Inference(Remembering(), torch.randn(8, 16)))
    assert site.holder.startswith("model.seen[…]")
    assert report.bytes_per_step == 8 * 16 * 4


def test_results_are_bitwise_the_same():
    def run(watching):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 4))
        step, losses = trained(model), []
        if watching:
            with MemoryWatch(every=10, window=5) as watch:
                for _ in range(40):
                    losses.append(step().item())
                    watch.step()
                watch.report()
        else:
            losses = [step().item() for _ in range(40)]
        return losses, [parameter.detach().clone() for parameter in model.parameters()]

    plain, watched = run(watching=False), run(watching=True)
    assert plain[0] == watched[0]
    assert all(torch.equal(a, b) for a, b in zip(plain[1], watched[1], strict=True))


@pytest.mark.parametrize(
    "surrounding",
    standing_for_all(
        {
            "no_grad": torch.no_grad,
            "inference_mode": torch.inference_mode,
            "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
        },
        "autocast",
    ),
)
def test_a_watch_inside_of_another_mode_works(surrounding):
    model, kept = nn.Linear(16, 16), []
    with surrounding():
        report, site = leaked(lambda: kept.append(model(torch.randn(4, 16)).detach().clone()))
    assert "kept" in site.holder
    assert report.bytes_per_step == 4 * 16 * kept[0].element_size()


def test_steps_with_function_transforms_are_watched():
    model, kept = nn.Linear(8, 8), []
    weights = dict(model.named_parameters())

    def output(weights, x):
        return torch.func.functional_call(model, weights, (x,)).sum()

    def step():
        gradients = torch.func.vmap(torch.func.grad(output), in_dims=(None, 0))(weights, torch.randn(4, 8))
        kept.append(gradients["weight"].detach().clone())

    report, site = leaked(step)
    assert "kept" in site.holder
    assert report.bytes_per_step == 4 * 8 * 8 * 4


def test_a_step_that_raises_is_the_users_error_and_leaves_nothing_behind():
    def step():
        raise ValueError("no such sensor")

    with pytest.raises(UserProgramError, match="no such sensor") as caught:
        watch_memory(step, steps=STEPS)
    assert isinstance(caught.value.__cause__, ValueError)
    assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()


def test_too_few_steps_say_how_many_are_needed():
    kept = []
    report = watch_memory(lambda: kept.append(torch.ones(9) + 1), steps=8)
    assert report.verdict == "undecided"
    assert report.sentence == "undecided: 8 steps are too few; 24 would decide"
    with pytest.raises(InputError, match="steps: got 0"):
        watch_memory(lambda: None, steps=0)
    with pytest.raises(InputError, match="at least 24"):
        assert_no_leak(lambda: None, steps=8)


def test_the_contract_fails_with_the_answer():
    kept = []
    with pytest.raises(AssertionError, match=r"^leak: 512 B per step stay in kept\[…\]") as caught:
        assert_no_leak(lambda: kept.append(torch.ones(128) + 1), steps=STEPS)
    assert isinstance(caught.value, BudgetExceededError)
    assert assert_no_leak(
        lambda: kept.append(torch.ones(128) + 1), steps=STEPS, allowed_bytes_per_step=1000
    ).bytes_per_step == pytest.approx(512)
    assert assert_no_leak(lambda: torch.ones(128) + 1, steps=STEPS).verdict == "stable"


def test_a_limit_gives_the_steps_that_are_left():
    kept = []
    report, _ = leaked(lambda: kept.append(torch.ones(2**18) + 1), limit_bytes=2**40)
    assert report.limit_bytes == 2**40
    assert 2**39 / 2**20 < report.eta_steps < 2**40 / 2**20


def test_windows_find_a_leak_and_forget_a_list_that_is_cleared():
    kept, epoch = [], []
    with MemoryWatch(every=60, window=20) as watch:
        for number in range(200):
            kept.append(torch.ones(128) + number)
            epoch.append(torch.ones(99) + number)
            if number % 40 == 39:
                epoch.clear()
            watch.step()
        report = watch.report()
    assert report.verdict == "leak"
    assert [site.holder.split("[")[0] for site in report.sites] == ["kept"]
    assert report.bytes_per_step == 512
    assert report.num_steps == 200
    assert report.overhead_share > 0
    assert any("in windows" in note for note in report.notes)


def test_a_report_before_enough_windows_is_undecided():
    with MemoryWatch(every=60, window=20) as watch:
        for _ in range(30):
            torch.ones(4)
            watch.step()
        assert watch.report().verdict == "undecided"


def test_a_watch_that_looks_for_tensors_only_sees_what_is_kept_without_a_mode():
    kept = []
    with MemoryWatch(every=STEPS, window=STEPS, operators=False) as watch:
        for _ in range(STEPS):
            assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()
            kept.append(torch.ones(128) + 1)
            watch.step()
        report = watch.report()
    assert report.verdict == "leak"
    assert report.bytes_per_step == 512
    assert "kept" in report.sites[0].holder
    assert any("compiled" in note for note in report.notes)


def test_compiled_code_runs_compiled_when_it_is_said_and_its_leak_is_found():
    calls, kept = [], []

    def backend(graph, inputs):
        def run(*args):
            calls.append(1)
            return graph(*args)

        return run

    compiled = torch.compile(lambda x: x * 2 + 1, backend=backend)
    try:
        report, site = leaked(lambda: kept.append(compiled(torch.ones(128))), compiled=True)
    finally:
        torch.compiler.reset()
    assert len(calls) == STEPS
    assert "kept" in site.holder
    assert report.bytes_per_step == 512


def test_growth_in_the_middle_of_a_report_is_counted_on():
    kept = []
    with MemoryWatch(every=100, window=100) as watch:
        for number in range(60):
            kept.append(torch.ones(128) + 1)
            watch.step()
            if number == 40:
                assert watch.report().bytes_per_step == 512
        assert watch.report().num_steps == 60


def test_a_watch_is_used_within_its_block_and_its_thread():
    with pytest.raises(UsageError, match="outside of its `with` block"):
        MemoryWatch().step()
    with pytest.raises(UsageError, match="before any step"):
        MemoryWatch().report()
    failures = []
    with MemoryWatch() as watch:

        def elsewhere():
            try:
                watch.step()
            except UsageError as error:
                failures.append(error)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert len(failures) == 1


def test_an_exception_in_the_loop_ends_the_watch():
    def loop():
        with MemoryWatch(every=30, window=30) as watch:
            watch.step()
            raise ValueError("loader")

    gc.unfreeze()  # or the watch would leave to others what they have frozen
    with pytest.raises(ValueError, match="loader"):
        loop()
    assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()
    assert gc.get_freeze_count() == 0
    gc.freeze()  # as the tests of a file begin


def test_a_model_that_comes_compiled_is_left_compiled():
    calls = []

    def backend(graph, inputs):
        def run(*args):
            calls.append(1)
            return graph(*args)

        return run

    work = pm.Inference(torch.compile(nn.Linear(8, 8), backend=backend), torch.randn(4, 8))
    try:
        report = watch_memory(work, steps=STEPS)
    finally:
        torch.compiler.reset()
    assert report.verdict == "stable"
    assert len(calls) == STEPS


def test_a_graph_is_not_blamed_on_who_has_just_the_newest_output():
    layer, kept, latest = nn.Linear(16, 16), [], {}

    def step():
        latest["output"] = torch.sigmoid(layer(torch.randn(4, 16)))
        kept.append(latest["output"].sum())

    report, site = leaked(step)
    assert [one.holder.split("[")[0] for one in report.sites] == ["kept"]
    assert site.graph_state == "alive"
