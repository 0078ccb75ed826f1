"""The search alone, on machines whose memory and latency are known functions of the batch."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.tuning.batching.largest_record import BatchTrial
from pyrometer.tuning.batching.search import Limits, Search


class Simulated(Search):
    """Runs nothing: both grow as a line; nothing is predicted."""

    def __init__(self, memory, latency, limits, present, trials):
        self.memory, self.latency = memory, latency
        super().__init__(lambda _: None, limits, torch.device("cpu"), present, trials=trials, trial_s=1.0)

    def _grown(self):
        return None

    def _is_safe(self, batch, predicted):
        return True

    def _run(self, batch, predicted):
        nbytes = self.memory[0] + self.memory[1] * batch
        latency_s = self.latency[0] + self.latency[1] * batch
        outcome = "fits"
        if nbytes > self.limits.memory_bytes:
            outcome = "too much memory"
        elif self.limits.latency_s is not None and latency_s > self.limits.latency_s:
            outcome = "too slow"
        timed = latency_s if outcome != "too much memory" else None
        return BatchTrial(batch=batch, measured_bytes=nbytes, latency_high_s=timed, outcome=outcome)

    def truth(self):
        """The largest batch that keeps within all limits."""
        allowed = [self.limits.most, (self.limits.memory_bytes - self.memory[0]) // self.memory[1]]
        if self.limits.latency_s is not None:
            allowed.append(int((self.limits.latency_s - self.latency[0]) / self.latency[1] + 1e-9))
        return max(min(allowed), 0)


lines = st.tuples(st.integers(0, 10_000), st.integers(1, 1000))
times = st.tuples(st.floats(0, 0.1), st.floats(1e-5, 1e-2))
limited = st.builds(Limits, st.integers(1, 10**7), st.none() | st.floats(1e-3, 10), st.just(4096))


@given(lines, times, limited, st.integers(1, 512), st.integers(1, 6))
def test_the_answer_always_keeps_within_the_limits(memory, latency, limits, present, trials):
    search = Simulated(memory, latency, limits, present, trials)
    search.run()
    assert len(search.tried) <= trials
    assert 0 <= search.best <= search.truth()
    assert len({trial.batch for trial in search.tried}) == len(search.tried)
    if search.best:
        assert any(trial.batch == search.best and trial.outcome == "fits" for trial in search.tried)


@given(lines, times, limited, st.integers(1, 512))
def test_with_some_trials_the_answer_is_within_a_few_per_cent(memory, latency, limits, present):
    search = Simulated(memory, latency, limits, present, trials=12)
    search.run()
    assert search.limited_by in {"memory", "latency", "nothing"}
    assert search.best >= int(search.truth() / 1.03) - 3  # a few samples of a batch that small


@given(memory=lines, memory_bytes=st.integers(1, 10**7), present=st.integers(1, 512))
def test_a_larger_size_is_never_run_beyond_the_memory_limit(memory, memory_bytes, present):
    search = Simulated(memory, (0.0, 1e-3), Limits(memory_bytes, None, 4096), present, trials=8)
    search.run()
    assert all(
        memory[0] + memory[1] * trial.batch <= memory_bytes for trial in search.tried if trial.batch > present
    )
