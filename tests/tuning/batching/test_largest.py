"""The largest batch: known truths, limits that hold, and programs that run out of memory on the way."""

from __future__ import annotations

import inspect

import pytest
import torch
from torch import nn
from torch.nn import functional

from pyrometer.errors import InputError, UserProgramError
from pyrometer.memory.recording.allocator import record_allocator
from pyrometer.record import from_json, to_json
from pyrometer.tuning.batching import search
from pyrometer.tuning.batching.largest import largest_batch
from pyrometer.tuning.checkpointing.plan import plan_checkpoints
from pyrometer.workload.call import Call
from pyrometer.workload.inference import Inference
from pyrometer.workload.training import Training


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for each other take longer than what these small programs compute."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class SteppedClock:
    """A clock that moves only when it is told to."""

    name = "wall"

    def __init__(self):
        self.now_ns = 0

    def mark(self):
        return self.now_ns

    def between(self, start, end):
        return (end - start) * 1e-9

    def host_ns(self):
        return self.now_ns

    def queued_ns(self):
        return 0

    def all_queued_ns(self):
        return 0

    def cpu_ns(self):
        return self.now_ns

    def synchronize(self):
        """Nothing to wait for."""

    def __deepcopy__(self, memo):
        return SteppedClock()


class Timed(nn.Module):
    """Takes 1 ms and 0.1 ms per sample."""

    def __init__(self, clock, fixed_s=1e-3, per_sample_s=1e-4):
        super().__init__()
        self.inner = nn.Linear(64, 64)
        self.clock, self.fixed_s, self.per_sample_s = clock, fixed_s, per_sample_s

    def forward(self, x):
        self.clock.now_ns += round((self.fixed_s + self.per_sample_s * len(x)) * 1e9)
        return self.inner(x)


class Refusing(nn.Module):
    """Fails for real tensors with more samples than it takes."""

    def __init__(self, error, most):
        super().__init__()
        self.inner = nn.Linear(64, 64)
        self.error, self.most = error, most

    def forward(self, x):
        if type(x) is torch.Tensor and len(x) > self.most:
            raise self.error
        return self.inner(x)


class Selecting(nn.Module):
    """Looks at values, so that nothing can be predicted."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(64, 64)

    def forward(self, x):
        return self.inner(x[x[:, 0] > -100])


def training(batch=8):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 16))
    batches = [(torch.randn(batch, 64), torch.randn(batch, 16))]
    return Training(model, functional.mse_loss, torch.optim.AdamW(model.parameters(), lr=1e-3), batches)


def peak(work):
    return record_allocator(work, steps=2).peak_bytes


def test_a_training_fits_at_the_answer_and_not_at_the_next_size():
    work, limit = training(), 2 << 20
    batch = largest_batch(work, budget=limit)
    assert batch.verified
    assert batch.limited_by == "memory"
    assert peak(training(batch.batch)) <= limit < peak(training(batch.batch + 1))
    assert batch.measured_bytes == peak(training(batch.batch))


def test_the_programs_state_is_as_before():
    work = training()
    before = [parameter.clone() for parameter in work.parts.model.parameters()]
    largest_batch(work, budget=1 << 20)
    assert all(map(torch.equal, before, work.parts.model.parameters()))
    assert not work.parts.optimizer.state
    assert len(work.batches[0][0]) == 8


def test_the_latency_limit_is_found_to_a_few_per_cent():
    clock = SteppedClock()
    work = Inference(Timed(clock), torch.randn(8, 64))
    batch = largest_batch(work, latency_s=10e-3, budget=1 << 30, clock=clock, budget_s=0.4)
    assert 88 <= batch.batch <= 90
    assert batch.limited_by == "latency"
    assert batch.latency_high_s <= 10e-3
    assert len(batch.tried) <= 4


def test_the_latency_of_a_training_is_limited_too():
    clock = SteppedClock()
    model = Timed(clock)
    batches = [(torch.randn(8, 64), torch.randn(8, 64))]
    work = Training(model, functional.mse_loss, torch.optim.SGD(model.parameters(), lr=0.1), batches)
    batch = largest_batch(work, latency_s=5e-3, budget=1 << 30, clock=clock, budget_s=0.4)
    assert 38 <= batch.batch <= 40


def test_a_batch_that_is_already_too_slow_is_made_smaller():
    clock = SteppedClock()
    work = Inference(Timed(clock), torch.randn(512, 64))
    batch = largest_batch(work, latency_s=10e-3, budget=1 << 30, clock=clock, budget_s=0.4)
    assert 85 <= batch.batch <= 90
    assert batch.tried[0].outcome == "too slow"


def test_the_tighter_of_two_limits_holds():
    clock = SteppedClock()
    work = Inference(Timed(clock), torch.randn(8, 64))
    memory = largest_batch(work, latency_s=1.0, budget=64 << 10, clock=clock, budget_s=0.4)
    assert memory.limited_by == "memory"
    assert memory.measured_bytes <= 64 << 10
    assert memory.batch == largest_batch(work, budget=64 << 10).batch
    latency = largest_batch(work, latency_s=2.05e-3, budget=64 << 10, clock=clock, budget_s=0.4)
    assert latency.limited_by == "latency"
    assert latency.batch == 10


def test_nothing_fits_into_too_little_memory():
    batch = largest_batch(training(), budget=1000)
    assert batch.batch is None
    assert batch.tried == []
    assert batch.sentence == "not even a batch of 1 keeps within 1000 B: limited by memory"


def test_nothing_is_fast_enough():
    clock = SteppedClock()
    work = Inference(Timed(clock), torch.randn(8, 64))
    batch = largest_batch(work, latency_s=5e-4, budget=1 << 30, clock=clock, budget_s=0.4)
    assert batch.batch is None
    assert batch.limited_by == "latency"


def test_without_a_limit_in_reach_the_search_ends_at_the_most():
    batch = largest_batch(training(), budget=1 << 30, most=64)
    assert (batch.batch, batch.limited_by, batch.verified) == (64, "nothing", True)
    assert "no limit was reached up to 64 samples" in batch.sentence


def test_without_trials_memory_is_predicted():
    batch = largest_batch(training(), budget=2 << 20, trials=0)
    assert not batch.verified
    assert batch.tried == []
    assert batch.batch == largest_batch(training(), budget=2 << 20).batch
    assert "was not run" in batch.sentence


def test_batches_are_made_by_the_users_function():
    asked = []

    def make_batch(size):
        asked.append(size)
        return torch.randn(size, 64), torch.randn(size, 16)

    batch = largest_batch(training(), budget=2 << 20, make_batch=make_batch)
    assert batch.batch in asked
    assert batch.batch == largest_batch(training(), budget=2 << 20).batch


def test_a_users_function_that_fails_is_told():
    def make_batch(size):
        raise ValueError("no more samples")

    with pytest.raises(UserProgramError, match=r"make_batch\(8\) raised ValueError: no more samples"):
        largest_batch(training(), budget=2 << 20, make_batch=make_batch)


def test_a_program_that_cannot_be_predicted_is_measured():
    work = Inference(Selecting(), torch.randn(8, 64))
    batch = largest_batch(work, budget=256 << 10, trials=6)
    assert batch.verified
    assert batch.measured_bytes <= 256 << 10
    assert batch.measured_bytes >= 0.9 * (256 << 10)
    assert all(trial.predicted_bytes is None for trial in batch.tried)
    assert any("needs the value" in note or "depends on values" in note for note in batch.notes)


@pytest.mark.parametrize(
    "error",
    [
        torch.cuda.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_a_size_that_runs_out_of_memory_is_stepped_back_from(error):
    work = Inference(Refusing(error, 100), torch.randn(8, 64))
    batch = largest_batch(work, budget=1 << 30, most=128, trials=6)
    assert batch.tried[0].outcome == "out of memory"
    assert 90 <= batch.batch <= 100
    assert batch.limited_by == "memory"


def test_a_size_that_fails_otherwise_is_stepped_back_from():
    work = Inference(Refusing(ValueError("at most 50"), 50), torch.randn(8, 64))
    batch = largest_batch(work, budget=1 << 30, most=64, trials=6)
    assert batch.tried[0].outcome.startswith("failed: the step raised ValueError: at most 50")
    assert 40 <= batch.batch <= 50
    assert batch.limited_by == "failure"


def test_the_present_batch_failing_is_the_users_error():
    with pytest.raises(UserProgramError, match="at most 4"):
        largest_batch(Inference(Refusing(ValueError("at most 4"), 4), torch.randn(8, 64)), most=8)


def test_no_size_is_run_that_is_not_expected_to_fit_into_the_machine(monkeypatch):
    monkeypatch.setattr(search, "host_available", lambda: 1 << 20)
    batch = largest_batch(training(), budget=64 << 20)
    assert [trial.outcome for trial in batch.tried] == ["not run"]
    assert not batch.verified
    assert batch.predicted_bytes <= 64 << 20
    assert any("are available" in note for note in batch.notes)


def test_by_default_the_machine_is_the_limit():
    batch = largest_batch(Inference(nn.Linear(64, 64), torch.randn(8, 64)), most=32)
    assert batch.batch == 32
    assert batch.memory_limit_bytes > 1 << 20


def test_the_record_survives_json():
    batch = largest_batch(training(), budget=1 << 20)
    assert from_json(type(batch), to_json(batch)) == batch


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget": 0}, "budget: got 0"),
        ({"budget": 1.5}, "budget: got 1.5"),
        ({"latency_s": 0.0}, "latency_s: got 0.0"),
        ({"latency_s": float("nan")}, "latency_s: got nan"),
        ({"trials": -1}, "trials: got -1"),
        ({"trials": 0, "latency_s": 1.0}, "latencies cannot be predicted"),
        ({"budget_s": 0}, "budget_s: got 0"),
        ({"most": 0}, "most: got 0"),
    ],
)
def test_illegal_limits_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        largest_batch(training(), **arguments)


def test_other_workloads_are_refused():
    with pytest.raises(InputError, match="got Call"):
        largest_batch(Call(sorted, [2, 1]))


def test_inputs_without_a_batch_are_refused():
    with pytest.raises(InputError, match="no tensor with a leading dimension"):
        largest_batch(Inference(nn.Identity(), torch.tensor(1.0)))


def test_the_budget_is_named_and_given_as_that_of_a_plan_of_checkpoints():
    assert {"budget", "budget_s"} <= {*inspect.signature(largest_batch).parameters} & {
        *inspect.signature(plan_checkpoints).parameters
    }
    as_text, as_number = (largest_batch(training(), budget=budget) for budget in ("2MiB", 2 << 20))
    assert (as_text.batch, as_text.memory_limit_bytes) == (as_number.batch, 2 << 20)
