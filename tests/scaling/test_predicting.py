"""Steps at many ranks from known schedules, links and steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.scaling.predict import Alone, peak_of, predict
from pyrometer.scaling.record import CollectiveCall, LinkFit, Links, Schedule
from pyrometer.scaling.stragglers import expected_slowest
from pyrometer.scaling.timeline import step_with

MIB = 1 << 20
LINKS = Links(backend="nccl", ranks_measured=2, inside=LinkFit(alpha_s=1e-6, beta_s=1e-9, error=0.1))


def schedule(*calls, parallel="ddp", overlaps=True, **fields):
    return Schedule(
        ranks=fields.pop("ranks", 8),
        parallel=parallel,
        calls=[CollectiveCall(operation=operation, bytes=size, at=at) for operation, size, at in calls],
        forward_ends=0.3,
        backward_ends=0.9,
        overlaps=overlaps,
        trained_bytes=100 * MIB,
        state_bytes=400 * MIB,
        **fields,
    )


def alone(times_s=(1.0,) * 50, **fields):
    return Alone(times_s=[*times_s], low_s=0.98, high_s=1.02, units=32, **fields)


class TestTimeline:
    def test_a_bucket_is_hidden_behind_the_rest_of_the_backward_pass(self):
        early = schedule(("all_reduce", MIB, 0.5))
        assert step_with(early, 1.0, lambda _call: 0.4) == pytest.approx(1.0)

    def test_the_last_bucket_stands_in_the_open(self):
        last = schedule(("all_reduce", MIB, 0.5), ("all_reduce", MIB, 0.9))
        assert step_with(last, 1.0, lambda _call: 0.1) == pytest.approx(1.1)

    def test_buckets_share_one_wire(self):
        both = schedule(("all_reduce", MIB, 0.5), ("all_reduce", MIB, 0.6))
        assert step_with(both, 1.0, lambda _call: 0.3) == pytest.approx(1.2)

    def test_where_nothing_overlaps_all_adds_up(self):
        plain = schedule(("all_reduce", MIB, 0.5), ("all_reduce", MIB, 0.6), overlaps=False)
        assert step_with(plain, 1.0, lambda _call: 0.3) == pytest.approx(1.6)

    def test_a_gather_hides_behind_the_layer_before_and_the_first_behind_nothing(self):
        gathers = schedule(
            ("all_gather", MIB, 0.0), ("all_gather", MIB, 0.1), ("all_gather", MIB, 0.2), parallel="fsdp"
        )
        assert step_with(gathers, 1.0, lambda _call: 0.08) == pytest.approx(1.08)
        assert step_with(gathers, 1.0, lambda _call: 0.25) == pytest.approx(0.75 + 0.8)

    def test_the_last_scatter_stands_in_the_open(self):
        scatters = schedule(("reduce_scatter", MIB, 0.6), ("reduce_scatter", MIB, 0.9), parallel="fsdp")
        assert step_with(scatters, 1.0, lambda _call: 0.2) == pytest.approx(1.2)

    @given(
        at=st.lists(st.floats(0, 0.9), min_size=1, max_size=12),
        cost=st.floats(0, 1),
        parallel=st.sampled_from(["ddp", "fsdp"]),
        kind=st.sampled_from(["all_gather", "reduce_scatter"]),
    )
    def test_a_step_is_no_shorter_than_either_and_no_longer_than_both(self, at, cost, parallel, kind):
        calls = [("all_reduce" if parallel == "ddp" else kind, MIB, share) for share in sorted(at)]
        step_s = step_with(schedule(*calls, parallel=parallel), 1.0, lambda _call: cost)
        total_s = cost * len(calls)
        assert max(1.0, total_s) - 1e-9 <= step_s <= 1.0 + total_s + 1e-9


class TestStragglers:
    def test_equal_steps_have_no_straggler(self):
        assert expected_slowest([1.0] * 100, 512) == 1.0

    @pytest.mark.parametrize("ranks", [2, 8, 64, 512])
    def test_the_slowest_of_simulated_ranks_is_foretold(self, ranks):
        random = np.random.default_rng(ranks)
        measured = random.lognormal(0, 0.1, 400)
        truth = np.median(random.lognormal(0, 0.1, (2000, ranks)).max(axis=1))
        assert expected_slowest(measured.tolist(), ranks) == pytest.approx(truth, rel=0.06)

    @pytest.mark.parametrize("ranks", [2, 4, 8])
    @pytest.mark.parametrize("waits", [1, 5, 20])
    @pytest.mark.parametrize("interrupted", [0.0, 0.02, 0.25])
    def test_parts_between_waits_vary_alone_and_interruptions_hit_one_of_them(
        self, ranks, waits, interrupted
    ):
        random = np.random.default_rng(ranks * waits)
        parts = random.normal(1 / waits, 0.2 / waits, (4000, ranks, waits))
        hit = random.random((4000, ranks)) < interrupted
        parts[..., 0] += hit * 0.5
        truth = np.median(parts.max(axis=1).sum(axis=1)) / np.median(parts.sum(axis=2))
        steps = parts.sum(axis=2)[:400, 0].tolist()
        assert expected_slowest(steps, ranks, waits) == pytest.approx(truth, rel=0.15)

    def test_too_few_steps_say_nothing(self):
        assert expected_slowest([1.0, 2.0], 64) == 1.0

    def test_more_ranks_wait_longer(self):
        measured = np.random.default_rng(1).lognormal(0, 0.2, 400).tolist()
        waits = [expected_slowest(measured, ranks) for ranks in (2, 16, 200, 1024, 8192)]
        assert waits == sorted(waits)


class TestPrediction:
    def test_a_step_bound_by_links_says_so(self):
        seen = predict(schedule(("all_reduce", 2000 * MIB, 0.9), ranks=64), alone(), LINKS)
        assert seen.binds == "communication"
        assert seen.low_s < seen.step_s < seen.high_s
        assert seen.efficiency == pytest.approx(1.0 / seen.step_s)
        assert seen.exposed_s == pytest.approx(seen.step_s - 1.0)

    def test_a_step_bound_by_late_ranks_says_so(self):
        times = np.random.default_rng(0).lognormal(0, 0.3, 400)
        assert (
            predict(schedule(("all_reduce", MIB, 0.5), ranks=512), alone(times), LINKS).binds == "stragglers"
        )

    def test_of_disturbed_steps_only_the_upper_end_has_late_ranks(self):
        times = np.random.default_rng(0).lognormal(0, 0.3, 400)
        told = [predict(schedule(ranks=512), alone(times, disturbed=one), LINKS) for one in (False, True)]
        assert told[1].straggler_s == 0
        assert told[1].step_s < told[0].step_s
        assert told[1].high_s == told[0].high_s

    def test_where_nothing_overlaps_ranks_may_wait_in_each_collective(self):
        times = np.random.default_rng(0).lognormal(0, 0.3, 400)
        calls = [("all_reduce", 0, 0.5)] * 16
        beside, apart = (
            predict(schedule(*calls, overlaps=one), alone(times), LINKS) for one in (True, False)
        )
        late = beside.high_s / 1.02 - 1
        assert apart.high_s / 1.02 - 1 == pytest.approx(4 * late, rel=0.01)

    def test_small_messages_leave_computing_what_binds(self):
        assert predict(schedule(("all_reduce", MIB, 0.5)), alone(), LINKS).binds == "compute"

    def test_what_wrapping_costs_is_part_of_the_step(self):
        plain, wrapped = schedule(), schedule(wrapping_ratio=1.2)
        assert predict(wrapped, alone(), LINKS).step_s == pytest.approx(
            1.2 * predict(plain, alone(), LINKS).step_s
        )

    def test_cost_is_the_price_of_all_ranks_over_their_units(self):
        seen = predict(schedule(ranks=10), alone(), LINKS, price_per_hour=3.6)
        assert seen.cost_per_million == pytest.approx(1e6 * 0.001 / 32)

    def test_ddp_keeps_all_state_and_adds_its_buckets(self):
        assert peak_of(schedule(), 500 * MIB) == 600 * MIB

    def test_fsdp_keeps_a_share_of_the_state_and_gathers_two_units(self):
        sharded = schedule(parallel="fsdp", ranks=4, largest_unit_bytes=10 * MIB)
        assert peak_of(sharded, 500 * MIB) == (100 + 100 + 20) * MIB
