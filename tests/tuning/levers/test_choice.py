"""Configurations: the order of levers, what excludes what, and what falls with a lever."""

from __future__ import annotations

import pytest

from pyrometer.errors import InputError
from pyrometer.tuning.levers import registry
from pyrometer.tuning.levers.choice import LeverChoice, key_of, label_of
from pyrometer.tuning.levers.configuration import with_lever, without_lever
from pyrometer.tuning.levers.lever import LeverOf, lever, registered

COMPILE = LeverChoice(lever="compile", parameters={"mode": "default"})
FROZEN = LeverChoice(lever="compile", parameters={"mode": "default", "freezing": True})
LAYOUT = LeverChoice(lever="channels_last")
BF16 = LeverChoice(lever="autocast_bf16")
CAST = LeverChoice(lever="cast_bf16")

SHARED = (
    "autocast",
    "optimizer_kernels",
    "loader_settings",
    "held_by_workload",
    "linears",
    "openvino",
    "ddp_hooks",
    "ddp_settings",
    "fsdp",
)
"""Files of several levers that are one idea."""


def test_levers_are_applied_by_their_place_whatever_the_order_in_which_they_were_kept():
    assert [c.lever for c in with_lever((COMPILE, BF16), LAYOUT)] == [
        "channels_last",
        "autocast_bf16",
        "compile",
    ]


def test_a_lever_takes_the_place_of_what_it_excludes_and_of_itself():
    assert with_lever((LAYOUT, BF16), CAST) == (LAYOUT, CAST)
    assert with_lever((COMPILE,), FROZEN) == (FROZEN,)


def test_leaving_out_a_lever_leaves_the_others():
    assert without_lever((LAYOUT, CAST, COMPILE), "cast_bf16") == (LAYOUT, COMPILE)


def test_keys_tell_parameters_apart_and_labels_read_well():
    assert key_of((COMPILE,)) != key_of((FROZEN,))
    assert key_of(()) == key_of([])
    assert label_of((LAYOUT, COMPILE)) == "channels_last + compile(mode=default)"
    assert label_of(()) == "baseline"


def test_two_levers_of_one_name_are_refused_and_both_named():
    class Other(registry.find_lever("threads").__class__):
        pass

    with pytest.raises(InputError, match=r"Threads.*Other|Other.*Threads"):
        lever(Other)


def test_an_unknown_lever_is_told_with_the_nearest():
    with pytest.raises(InputError, match="did you mean 'compile'"):
        registry.select(["compil"], [])


def test_levers_can_be_chosen_and_left_out():
    assert [each.name for each in registry.select(["compile", "threads"], ["threads"])] == ["compile"]


@pytest.mark.parametrize("name", registry.levers())
def test_every_lever_says_what_it_is(name):
    found = registry.find_lever(name)
    assert isinstance(found, LeverOf)
    assert name.isidentifier()
    assert len(found.title) < 80
    assert found.why.endswith(".")
    assert 0 < found.prior <= 1.5
    assert type(found).__module__.rpartition(".")[2] in {name, *SHARED}


def test_levers_of_other_packages_are_found_by_entry_point(monkeypatch):
    threads = type(registry.find_lever("threads"))

    class Point:
        def load(self):
            @lever
            class Foreign(threads):
                name = "foreign_threads"

    monkeypatch.setattr(
        registry, "entry_points", lambda group: [Point()] if group == registry.ENTRY_POINT else []
    )
    registry._load.cache_clear()
    try:
        assert "foreign_threads" in registry.levers()
    finally:
        registered.pop("foreign_threads", None)
        registry._load.cache_clear()


def test_a_package_of_levers_that_cannot_be_loaded_is_named(monkeypatch):
    class Point:
        name, value = "theirs", "their_package.levers"

        def load(self):
            raise ImportError("No module named 'their_dependency'")

    monkeypatch.setattr(registry, "entry_points", lambda group: [Point()])
    registry._load.cache_clear()
    try:
        with pytest.raises(
            InputError, match=r"levers of theirs \(their_package.levers\) cannot be loaded.*uninstall"
        ):
            registry.levers()
    finally:
        registry._load.cache_clear()
