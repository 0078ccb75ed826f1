"""Who answers: by a hash that is the same everywhere, in the shares that were asked for."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import pyrometer as pm
from pyrometer.errors import InputError
from pyrometer.rollout.flags import DeviceFlag, device_attributes
from pyrometer.rollout.router import Router

UNITS = [f"unit-{number}" for number in range(20_000)]
VECTOR_17 = 0.22529271445366061
share = st.floats(0.0, 1.0)


def test_points_of_units_are_those_of_keyed_blake2b():
    # A change of these figures would move every unit of every running rollout.
    router = Router({"v1": 1.0}, key="perception")
    assert router.point("vehicle-17") == pytest.approx(VECTOR_17, abs=1e-15)
    assert router.point(17) == router.point("17") == router.point(b"17")
    assert Router({"v1": 1.0}, key="k" * 100).point("x") != Router({"v1": 1.0}, key="k" * 99).point("x")


def test_another_process_with_other_hash_seed_chooses_alike():
    program = (
        "import pyrometer as pm; r = pm.Router({'v1': .5, 'v2': .5}, key='k'); "
        "print(''.join(r.choose(f'u{i}')[1] for i in range(200)))"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    router = pm.Router({"v1": 0.5, "v2": 0.5}, key="k")
    assert said[0] == said[1] == "".join(router.choose(f"u{i}")[1] for i in range(200)) + "\n"


@given(share, st.text(max_size=80))
def test_shares_are_within_binomial_bounds(weight, key):
    router = Router({"v1": 1 - weight, "v2": weight}, key=key)
    chosen = sum(router.choose(unit) == "v2" for unit in UNITS[:2000])
    low, high = binom.ppf([1e-7, 1 - 1e-7], 2000, weight)
    assert low <= chosen <= high


@given(st.lists(share, min_size=2, max_size=6), st.text(max_size=20))
def test_units_move_only_to_the_new_version_as_its_share_grows(shares, key):
    router = Router({"v1": 1.0}, key=key)
    taken: list[set[str]] = []
    for weight in sorted(shares):
        router.update({"v1": 1 - weight, "v2": weight})
        taken.append({unit for unit in UNITS[:500] if router.choose(unit) == "v2"})
    assert all(before <= after for before, after in pairwise(taken))


@given(st.floats(0.0, 0.5), st.floats(0.0, 0.5))
def test_two_new_versions_do_not_move_each_others_units(first, second):
    router = Router({"v1": 1 - first, "v2": first, "v3": 0.0}, key="k")
    before = {unit for unit in UNITS[:500] if router.choose(unit) == "v2"}
    router.update({"v1": 1 - first - second, "v2": first, "v3": second})
    after = {unit for unit in UNITS[:500] if router.choose(unit) == "v2"}
    assert before == after


@pytest.mark.parametrize(
    "weights",
    [{"v1": 0, "v2": 1}, {"v1": 0, "v2": 0.1, "v3": 0.2, "v4": 0.7}, {"v1": 0, "v2": 0.3, "v3": 0.7}],
)
def test_a_version_without_a_share_never_answers(weights):
    router = Router(weights, key="k")
    assert {router.choose(unit) for unit in UNITS} == set(weights) - {"v1"}


def test_draws_under_different_keys_are_independent():
    one, two = (Router({"v1": 0.5, "v2": 0.5}, key=key) for key in ("a", "b"))
    both = sum(one.choose(unit) == two.choose(unit) == "v2" for unit in UNITS)
    low, high = binom.ppf([1e-6, 1 - 1e-6], len(UNITS), 0.25)
    assert low <= both <= high


def test_batches_are_drawn_by_chance_and_need_no_unit():
    router = Router({"v1": 0.8, "v2": 0.2}, sticky=False, rng=random.Random(5))
    chosen = sum(router.choose() == "v2" for _ in range(5000))
    low, high = binom.ppf([1e-6, 1 - 1e-6], 5000, 0.2)
    assert low <= chosen <= high


def test_in_shadow_the_old_version_answers_and_the_new_one_computes_its_share():
    router = Router({"v1": 0.9, "v2": 0.1}, key="k", shadow=True)
    routes = [router.route(unit) for unit in UNITS]
    assert {route.arm for route in routes} == {"v1"}
    beside = {unit for unit, route in zip(UNITS, routes, strict=True) if route.shadow == "v2"}
    open_router = Router({"v1": 0.9, "v2": 0.1}, key="k")
    assert beside == {unit for unit in UNITS if open_router.choose(unit) == "v2"}


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({}, "got nothing"),
        ({"v1": 0, "v2": 0}, "v1=0, v2=0"),
        ({"v1": 1.5, "v2": -0.5}, "v2=-0.5"),
        ({"v1": float("nan"), "v2": 1}, "v1=nan"),
        ({"v1": float("inf"), "v2": 1}, "v1=inf"),
    ],
)
def test_what_is_no_share_is_refused_and_the_old_shares_hold(weights, said):
    router = Router({"v1": 1.0, "v2": 0.0})
    with pytest.raises(InputError, match=said):
        router.update(weights)
    assert router.weights == {"v1": 1.0, "v2": 0.0}


def test_a_sticky_router_needs_a_unit():
    with pytest.raises(InputError, match="sticky=False"):
        Router({"v1": 1.0}).choose()


def test_routes_know_the_shares_that_they_were_decided_by():
    router = Router({"v1": 1.0, "v2": 0.0}, sticky=False)
    assert router.route().epoch == 0
    router.update({"v1": 0.0, "v2": 1.0}, epoch=7)
    assert router.route()[::2] == ("v2", 7)


@pytest.fixture
def client():
    api = pytest.importorskip("openfeature.api")
    from openfeature.flag_evaluation import FlagResolutionDetails, Reason
    from openfeature.provider.in_memory_provider import InMemoryFlag, InMemoryProvider

    def by_device(flag, context):
        small = context.attributes["gpu_memory_bytes"] < 16 << 30
        variant = "lite" if small or context.attributes.get("region") == "eu" else "none"
        return FlagResolutionDetails(flag.variants[variant], variant=variant, reason=Reason.TARGETING_MATCH)

    flag = InMemoryFlag("none", {"none": "", "lite": "v1-lite"}, context_evaluator=by_device)
    api.set_provider(InMemoryProvider({"perception": flag}))
    yield api.get_client()
    api.clear_providers()


def test_a_flag_names_the_version_for_a_device(client):
    weights = {"v1": 0.5, "v1-lite": 0.0, "v2": 0.5}
    flags = [
        DeviceFlag("perception", {"gpu": "T4", "gpu_memory_bytes": memory << 30, "region": region}, client)
        for memory, region in ((8, "us"), (80, "us"), (80, "eu"))
    ]
    chosen = [{Router(weights, flag=flag).choose(unit) for unit in UNITS[:200]} for flag in flags]
    assert chosen == [{"v1-lite"}, {"v1", "v2"}, {"v1-lite"}]


def test_a_flag_is_asked_per_tick_and_keeps_its_value_when_the_provider_fails(client):
    flag = DeviceFlag("perception", {"gpu_memory_bytes": 8 << 30}, client)
    asked = []
    ask = client.get_string_details

    def fails(*given):
        asked.append(given)
        return ask("no such flag", *given[1:])

    client.get_string_details = fails
    router = Router({"v1": 0.5, "v1-lite": 0.5}, flag=flag)
    assert {router.choose(unit) for unit in UNITS[:100]} == {"v1-lite"}
    assert not asked
    assert flag.refresh() == "v1-lite"
    assert (len(asked), flag.num_failed) == (1, 1)
    assert "FLAG_NOT_FOUND" in flag.last_error


def test_attributes_of_this_device_are_plain_figures():
    found = device_attributes(region="eu")
    assert found["region"] == "eu"
    assert found["memory_bytes"] > 1 << 28
    assert all(isinstance(value, str | int | float) for value in found.values())
