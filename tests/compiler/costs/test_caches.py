"""Caches: what was found, and in what the key of the rest differs from what was there."""

from __future__ import annotations

import pytest

from pyrometer.compiler.costs.caches import GUARD_MISS, NOT_KEPT, read_cache
from pyrometer.compiler.costs.key_difference import differences
from pyrometer.compiler.costs.keys import Key
from pyrometer.compiler.log import CompileLog


def tensor(shape, stride, dtype="float32", device="cpu", requires_grad=False):
    return (
        f"TensorMetadata(dtype=torch.{dtype}, shape=torch.Size({list(shape)}), stride={tuple(stride)}, "
        f"device=device(type='{device}', index=0), layout=torch.strided, requires_grad={requires_grad}, is_sparse=None)"
    )


def components(*, graph="g0", inputs=(), is_backward=False, **settings):
    """As torch writes them; the hash of a part stands for its value."""
    parts = {
        "gm": graph,
        **{f"example_inputs[{at}]": text for at, text in enumerate(inputs)},
        "fx_kwargs[is_backward]": is_backward,
        "fx_kwargs[get_decomp_fn]": "<function select_decomp_table at 0x7f1f15d75080>",
        "fx_kwargs[static_input_idxs]": list(range(len(inputs))),
        "default_dtype": settings.pop("default_dtype", "torch.float32"),
        "torch_version": settings.pop("torch_version", "\x01\x02"),
        "inductor_config[max_autotune]": settings.pop("max_autotune", False),
        **settings,
    }
    return [f"[h{abs(hash(str(value)))}] {name}: {value}" for name, value in parts.items()]


def look(build, outcome, key, parts=(), *, cache="fx_graph_cache", **told):
    build.artifact(f"{cache}_{outcome}", {"key": key, "components": list(parts), **told})


A, B = tensor((4, 8), (8, 1)), tensor((8,), (1,))


def changed(before, after):
    return differences(Key(after), Key(before))


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (components(), components(max_autotune=True), ["config max_autotune (False → True)"]),
        (
            components(inputs=[A, B]),
            components(inputs=[tensor((6, 8), (8, 1)), B]),
            ["input 0 size ([4, 8] → [6, 8])"],
        ),
        (
            components(inputs=[A]),
            components(inputs=[tensor((4, 8), (8, 1), "bfloat16")]),
            ["input 0 dtype (float32 → bfloat16)"],
        ),
        (
            components(inputs=[A]),
            components(inputs=[tensor((4, 8), (1, 4))]),
            ["input 0 stride ((8, 1) → (1, 4))"],
        ),
        (
            components(inputs=[A]),
            components(inputs=[tensor((4, 8), (8, 1), requires_grad=True)]),
            ["input 0 requires_grad (False → True)"],
        ),
        (
            components(inputs=[A]),
            components(inputs=[tensor((4, 8), (8, 1), device="cuda")]),
            ["input 0 device (device(type='cpu', index=0) → device(type='cuda', index=0))"],
        ),
        (components(graph="g0"), components(graph="g1"), ["graph"]),
        (components(), components(torch_version="\x03"), ["torch version"]),
        (
            components(),
            components(default_dtype="torch.float64"),
            ["default dtype (torch.float32 → torch.float64)"],
        ),
        (components(inputs=[A, B]), components(inputs=[A, "('s0',)", B]), ["input 1 is new"]),
        (components(inputs=[A, "('s0',)", B]), components(inputs=[A, B]), ["input 1 is gone"]),
        (
            components(inputs=["('s0',)"]),
            components(inputs=["('s1',)"]),
            ["input 0 value (('s0',) → ('s1',))"],
        ),
        (
            components(inputs=[B, A]),
            components(inputs=[B, "('s0',)", tensor(("s0", 8), (8, 1))]),
            ["input 2 size ([4, 8] → ['s0', 8])", "input 1 is new"],
        ),
        (components(), components(**{"inductor_config[new]": 3}), ["config new (none → 3)"]),
        (
            components(joint_custom_pre_pass="None"),
            components(joint_custom_pre_pass="x" * 99),
            ["joint custom pre pass"],
        ),
        (components(), components(), []),
    ],
)
def test_what_differs_is_said_in_words(before, after, words):
    assert changed(before, after) == words


def test_settings_are_told_before_the_graph_and_inputs_last():
    found = changed(components(inputs=[A]), components(inputs=[B], graph="g1", max_autotune=True))
    assert found == ["config max_autotune (False → True)", "graph", "input 0 size ([4, 8] → [8])"]


def test_many_differing_inputs_are_counted():
    before, after = ([tensor((size, at), (at, 1)) for at in range(1, 31)] for size in (2, 3))
    found = changed(components(inputs=before), components(inputs=after))
    assert found[0] == "input 0 size ([2, 1] → [3, 1])"
    assert found[-1] == "22 more inputs"
    assert len(found) == 9


def test_a_function_is_the_same_wherever_it_lies():
    before = components()
    after = [part.replace("0x7f1f15d75080", "0x7f0000000000") for part in before]
    assert changed(before, after) == []


def test_parts_of_an_unknown_form_are_left_out():
    assert not Key(["no hash", "", "[abc]"])


def test_a_miss_is_held_against_the_nearest_entry_before_it(build):
    look(build, "miss", "far", components(graph="g9", inputs=[A, A, A]))
    look(build, "hit", "near", components(inputs=[A]))
    look(build, "miss", "this", components(inputs=[A], max_autotune=True))
    events = read_cache(build.log()).events
    assert (events[0].differs_from, events[0].differing) == (None, [])
    assert events[1].differs_from is None  # it was found
    assert events[2].differs_from == "near"
    assert events[2].differing == ["config max_autotune (False → True)"]


def test_of_equally_near_entries_the_latest_counts(build):
    look(build, "miss", "old", components())
    look(build, "miss", "new", [*components()])
    look(build, "miss", "this", components(max_autotune=True))
    assert read_cache(build.log()).events[2].differs_from == "new"


def test_a_key_that_was_there_before_says_that_its_entry_is_gone(build):
    look(build, "miss", "other", components(max_autotune=True))
    look(build, "miss", "same", components())
    yesterday = build.log()
    build.entries.clear()
    look(build, "miss", "same", components())
    (event,) = read_cache(build.log(), [yesterday]).events
    assert (event.differs_from, event.differing, event.reason) == (None, [], NOT_KEPT)


def test_forward_and_backward_are_not_held_against_each_other(build):
    look(build, "miss", "forward", components())
    look(build, "miss", "backward", components(is_backward=True))
    assert [event.differs_from for event in read_cache(build.log()).events] == [None, None]


def test_caches_are_not_held_against_each_other(build):
    look(build, "miss", "inductor", components())
    look(build, "miss", "autograd", components(), cache="aotautograd_cache")
    assert [(event.cache, event.differs_from) for event in read_cache(build.log()).events] == [
        ("fx_graph", None),
        ("aot_autograd", None),
    ]


def test_the_entry_may_be_in_the_log_of_an_earlier_run(build):
    look(build, "miss", "today", components(max_autotune=True))
    today = build.log()
    build.entries.clear()
    look(build, "miss", "yesterday", components())
    (event,) = read_cache(today, [build.log()]).events
    assert (event.differs_from, event.differing) == ("yesterday", ["config max_autotune (False → True)"])


def test_a_key_without_components_stays_unexplained(build):
    look(build, "miss", "a", cache="aotautograd_cache")
    look(build, "miss", "b", cache="aotautograd_cache")
    assert [event.differing for event in read_cache(build.log()).events] == [[], []]


def test_a_key_that_was_found_may_miss_for_its_guards(build):
    look(build, "miss", "a", components(), cache_status_detailed="guard_miss")
    assert read_cache(build.log()).events[0].reason == GUARD_MISS


def test_a_bypass_says_why(build):
    build.artifact("fx_graph_cache_bypass", {"cache_bypass_reason": "Unsupported post grad custom pass"})
    build.artifact("aotautograd_cache_bypass", {"key": None, "cache_bypass_reason": "freezing"})
    summary = read_cache(build.log())
    assert [(event.outcome, event.key, event.reason) for event in summary.events] == [
        ("bypass", "", "Unsupported post grad custom pass"),
        ("bypass", "", "freezing"),
    ]
    assert (summary.hits, summary.misses, summary.bypasses, summary.state) == (0, 0, 2, "cold")


def test_a_hit_tells_what_it_spared(build):
    look(build, "hit", "a", time_saved_ns=1_500_000_000)
    look(build, "hit", "b", time_saved_ms=250.0, cache="aotautograd_cache")
    look(build, "hit", "c")
    assert [event.saved_s for event in read_cache(build.log()).events] == [1.5, 0.25, None]


@pytest.mark.parametrize(
    ("outcomes", "state"),
    [
        ("", "unused"),
        ("h", "warm"),
        ("hh", "warm"),
        ("m", "cold"),
        ("mb", "cold"),
        ("hm", "mixed"),
        ("hb", "mixed"),
    ],
)
def test_the_state_of_the_caches(build, outcomes, state):
    names = {"h": "hit", "m": "miss", "b": "bypass"}
    for number, outcome in enumerate(outcomes):
        look(build, names[outcome], str(number))
    assert read_cache(build.log()).state == state


def test_a_payload_that_is_no_object_is_a_look_all_the_same(build):
    build.artifact("fx_graph_cache_miss", "torn off {")
    assert read_cache(build.log()).misses == 1


def test_nothing_was_asked():
    assert read_cache(CompileLog(())).state == "unused"
