"""Deep probes leave no trace, let no failure of their own through, and see compilations only."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os

import pytest
import torch

from pyrometer.compiler.collecting.collector import collect
from pyrometer.compiler.fusion.read import read_fusion
from pyrometer.compiler.private import inductor as home
from pyrometer.compiler.private import passes, refusals, scheduler
from pyrometer.compiler.private.inductor import deep_probes, fresh_compiles

pytestmark = pytest.mark.slow  # Inductor compiles in each

CACHE = [f"{cache}_cache_{end}" for cache in ("fx_graph", "aotautograd") for end in ("hit", "miss", "bypass")]


def state():
    """All that probes touch, and all that torch keeps of settings."""
    import torch._functorch.config
    import torch._inductor.config
    from torch._inductor import debug, freezing, pattern_matcher
    from torch._inductor import scheduler as torchs
    from torch._inductor.codegen import cpp, triton
    from torch.fx.passes.graph_transform_observer import GraphTransformObserver

    owners = [
        debug,
        cpp,
        triton,
        freezing,
        torchs.Scheduler,
        torchs.WhyNoFuse,
        GraphTransformObserver,
        *(getattr(pattern_matcher, name) for name in passes.ENTRIES),
    ]
    return {
        "inductor": torch._inductor.config.get_config_copy(),
        "functorch": torch._functorch.config.get_config_copy(),
        "functions": [{name: one for name, one in vars(owner).items() if callable(one)} for owner in owners],
        "environment": dict(os.environ),
        "random": torch.get_rng_state().tolist(),
    }


def loggers():
    return {
        name: (one.level, one.propagate, one.disabled, list(one.handlers))
        for name, one in logging.root.manager.loggerDict.items()
        if isinstance(one, logging.Logger)
    }


def used(program):
    """Compiled once before: some of its state torch changes by itself, once."""
    function, args = program
    home.load_inductor()
    torch.compile(function)(*args)
    torch._dynamo.reset()
    return function, args


def told(collector, kind):
    return [entry.metadata for entry in collector.log().of(f"pyrometer.{kind}")]


def test_everything_is_as_before_afterwards(attend):
    function, args = used(attend)
    before, channels = state(), loggers()
    with collect() as collector, deep_probes(collector):
        assert state() != before
        torch.compile(function)(*args)
    assert state() == before
    after = loggers()
    assert {name: after[name] for name in channels} == channels
    assert collector.unavailable == []
    assert len(told(collector, "fusion")) == 1


@pytest.mark.exhaustive
def test_everything_is_as_before_when_the_compile_raises(attend):
    import torch._inductor.config

    def broken(_graph):
        raise ValueError("the user's own pass")

    function, args = used(attend)
    before, channels = state(), loggers()
    with (
        pytest.raises(Exception, match="the user's own pass"),
        torch._inductor.config.patch(post_grad_custom_post_pass=broken),
        collect() as collector,
        deep_probes(collector),
    ):
        torch.compile(function)(*args)
    assert state() == before
    after = loggers()
    assert {name: after[name] for name in channels} == channels
    assert told(collector, "pass")


@pytest.mark.exhaustive
def test_a_pass_of_the_users_is_called_as_ever(attend):
    import torch._inductor.config
    from torch._inductor.custom_graph_pass import CustomSchedulerPass

    class Own(CustomSchedulerPass):
        calls = 0

        def __call__(self, nodes):
            Own.calls += 1
            return nodes

        def uuid(self):
            return "own"

    function, args = attend
    own = Own()
    with (
        torch._inductor.config.patch(_post_fusion_custom_pass=own),
        collect() as collector,
        deep_probes(collector),
    ):
        assert torch._inductor.config._post_fusion_custom_pass is own
        torch.compile(function)(*args)
    assert Own.calls == 1
    assert len(told(collector, "fusion")) == 1


def test_a_failing_probe_is_told_and_the_compile_goes_on(monkeypatch):
    def broken(*_args, **_kwargs):
        raise RuntimeError("a bug of ours")

    def rows_and_columns(x):
        return x.sum(0), x.sum(1), x.view(-1).view(x.shape) + 1

    for owner, name in (
        (scheduler, "_groups"),
        (scheduler, "_op_names"),
        (refusals.Refusals, "_keep"),
        (passes, "_Open"),
        (passes, "_pattern_name"),
    ):
        monkeypatch.setattr(owner, name, broken)
    x = torch.randint(-8, 8, (512, 512)).float()  # sums are exact
    with collect() as collector, deep_probes(collector):
        compiled = torch.compile(rows_and_columns)(x)
    torch.testing.assert_close(compiled, rows_and_columns(x))
    bug = "the probe failed with RuntimeError: a bug of ours"
    assert sorted(collector.unavailable) == [
        f"{what}: {bug}"
        for what in (
            "effect of passes",
            "fused groups",
            "matches of patterns",
            "names of kernels",
            "why nodes were not fused",
        )
    ]
    assert told(collector, "fusion") == told(collector, "pass") == []


@pytest.mark.exhaustive
def test_what_one_part_of_a_probe_cannot_tell_the_others_still_do(attend, monkeypatch):
    def absent(*_args):
        raise AttributeError("next year's torch")

    monkeypatch.setattr(scheduler, "_peak_bytes", absent)
    function, args = attend
    with collect() as collector, deep_probes(collector):
        torch.compile(function)(*args)
    (graph,) = told(collector, "fusion")
    assert "peak_bytes" not in graph
    assert graph["groups"]
    (text,) = collector.unavailable
    assert text.startswith("Inductor's estimate of peak memory: the probe failed with AttributeError")


@pytest.mark.exhaustive
def test_probes_see_what_a_cache_holds_only_when_asked_to_compile_afresh(attend):
    from torch._inductor.utils import fresh_cache

    function, args = attend
    home.load_inductor()
    seen = []
    with fresh_cache():
        for fresh in (False, False, True):
            torch._dynamo.reset()
            with collect() as collector, deep_probes(collector, fresh=fresh):
                torch.compile(function)(*args)
            seen.append(collector.log())
    cold, entries, afresh = ([*log.of("pyrometer.fusion")] for log in seen)
    assert (len(cold), len(entries), len(afresh)) == (1, 0, 1)
    (group,) = read_fusion(seen[1]).groups
    assert (group.kind, group.read_bytes) == ("extern", None)


@pytest.mark.exhaustive
def test_probed_compiles_leave_the_users_cache_as_it_is(attend):
    from torch._inductor.utils import fresh_cache

    function, args = attend
    home.load_inductor()
    hits = []
    with fresh_cache():
        for probes in (deep_probes, None, deep_probes, None):
            torch._dynamo.reset()
            with collect() as collector, contextlib.nullcontext() if probes is None else probes(collector):
                torch.compile(function)(*args)
            hits.append([entry.kind for entry in collector.log().of(*CACHE)])
    missed = ["aotautograd_cache_miss", "fx_graph_cache_miss"]
    assert [sorted(one) for one in hits[:3]] == [[], missed, []]
    assert "aotautograd_cache_hit" in hits[3]


def test_fresh_compiles_switch_caches_off_for_a_while():
    import torch._functorch.config
    import torch._inductor.config

    before = (torch._inductor.config.fx_graph_cache, torch._functorch.config.enable_autograd_cache)
    with fresh_compiles():
        assert not torch._inductor.config.fx_graph_cache
        assert not torch._functorch.config.enable_autograd_cache
    assert before == (torch._inductor.config.fx_graph_cache, torch._functorch.config.enable_autograd_cache)


def test_this_torch_has_a_place_for_every_probe():
    assert home.missing() == []


def test_a_torch_that_lacks_a_source_is_told_of_in_words(monkeypatch):
    from torch._inductor import pattern_matcher
    from torch._inductor import scheduler as torchs

    importlib.import_module("torch._inductor.freezing")  # it registers patterns, once
    monkeypatch.delattr(torchs.WhyNoFuse, "__call__")
    monkeypatch.delattr(pattern_matcher, "GraphPatternEntry")
    lacks = home.missing()
    assert [text.split(":")[0] for text in lacks] == ["why nodes were not fused", "matches of patterns"]
    with collect() as collector, deep_probes(collector):
        pass
    assert collector.unavailable[:2] == lacks


def test_refusals_beyond_the_limit_are_only_counted(monkeypatch):
    monkeypatch.setattr(refusals, "MAX_PAIRS", 1)

    class Graph:
        """Stands for Inductor's graph."""

    class Pair:
        def __init__(self, first, second):
            self.name1, self.name2 = first, second

    from torch._inductor.virtualized import V

    kept = refusals.Refusals(collect)
    graph = Graph()
    with V.set_graph_handler(graph):
        for second in ("op1", "op2_op3", "op1_op4"):
            kept._keep(Pair("op0", second), "no shared data", ())
        kept._keep(Pair("op0", "op1"), "device mismatch (%s vs %s)", ("cpu", "cuda:0"))
    groups = [
        {"name": name, "members": members, "reads": {"x": 8}, "writes": {}}
        for name, members in (("op0", ["op0"]), ("op1_op4", ["op1", "op4"]), ("op2_op3", ["op2", "op3"]))
    ]
    found = kept.taken(graph, groups)
    assert found["not_fused"] == [
        {
            "first": "op0",
            "second": "op1_op4",
            "reason": "device mismatch (cpu vs cuda:0)",
            "shared_bytes": 8,
        }
    ]
    assert found["reasons"] == {"device mismatch": 1}
    assert found["only_counted"] == {"no shared data": 1}
    assert kept.taken(graph, groups)["not_fused"] == []


def test_nodes_that_end_in_one_group_are_no_refusal():
    class Graph:
        """Stands for Inductor's graph."""

    class Pair:
        name1, name2 = "op0", "op1"

    from torch._inductor.virtualized import V

    kept, graph = refusals.Refusals(collect), Graph()
    with V.set_graph_handler(graph):
        kept._keep(Pair(), "intermediate nodes between node1 & node2", ())
    group = {"name": "op0_op1", "members": ["op0", "op1"], "reads": {}, "writes": {}}
    assert kept.taken(graph, [group]) == {"not_fused": [], "reasons": {}, "only_counted": {}}
