"""Advice about sizes that vary is followed, and graphs are counted."""

from __future__ import annotations

import msgspec
import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.compiler.advice.fitting import fitting_levers
from pyrometer.compiler.inspection.observe import observe_compile
from pyrometer.report.facts.compile import headline, sections

pytestmark = pytest.mark.slow  # compiles


class Entry:
    keys = values = None


class Cache:
    def __init__(self, num_layers: int) -> None:
        self.layers = [Entry() for _ in range(num_layers)]


class Decoder(nn.Module):
    """Attention over a cache that grows; the cache keeps `keys` and `values` per layer."""

    def __init__(self, num_layers: int = 3) -> None:
        super().__init__()
        self.embed = nn.Embedding(16, 8)
        self.project = nn.ModuleList(nn.Linear(8, 8) for _ in range(num_layers))
        self.heads = 2

    def forward(self, ids, cache):
        x = self.embed(ids)
        for project, entry in zip(self.project, cache.layers):  # noqa: B905 - strict is not for Dynamo
            key, value = project(x), -x
            if entry.keys is not None:
                key, value = torch.cat([entry.keys, key], 1), torch.cat([entry.values, value], 1)
            entry.keys, entry.values = key, value
            x = x + nn.functional.scaled_dot_product_attention(x, key, value) / self.heads
        return x


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Module()
        self.encoder.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(5))
        self.stem = nn.Sequential(
            nn.Conv1d(8, 8, 1), nn.ReLU(), nn.BatchNorm1d(8), nn.Conv1d(8, 8, 1), nn.ReLU()
        )

    def forward(self, pixels, mask):
        x = self.stem(pixels.transpose(1, 2)).transpose(1, 2) * mask[..., None]
        for layer in self.encoder.layers:
            x = layer(x).relu()
        return x


def decode(prepare="", steps=3):
    """Prefill and a few steps; before each step `prepare` is executed on the cache."""
    cache, ids = Cache(3), torch.arange(6)[None]
    torch._dynamo.reset()
    with observe_compile() as seen, torch.no_grad():
        model = torch.compile(Decoder().eval(), backend="eager")
        model(ids, cache)
        for _ in range(steps):
            exec(prepare, {"torch": torch, "cache": cache})
            model(ids[:, :1], cache)
    return seen.report()


def read(lengths, prepare=""):
    torch._dynamo.reset()
    model = Reader().eval()
    with observe_compile() as seen, torch.no_grad():
        compiled = torch.compile(model, backend="eager")
        for length in lengths:
            pixels, mask = torch.randn(2, length, 8), torch.ones(2, length)
            exec(prepare, {"torch": torch, "pixels": pixels, "mask": mask})
            compiled(pixels, mask)
    return seen.report(), model


@pytest.fixture(scope="module")
def decoding():
    return decode()


def lever(report, name):
    return next((lever.sketch for lever in fitting_levers(report) if lever.lever == name), None)


def test_the_cause_in_decoding_is_the_entry_of_the_cache(decoding):
    grown = [change.name for change in decoding.recompiles[-1].changed_inputs]
    assert grown[:2] == ["cache.layers[0].keys, dimension 1", "cache.layers[0].values, dimension 1"]
    assert len(grown) == 6
    assert "mostly of cache.layers[…].keys, dimension 1" in headline(decoding)


def test_an_attribute_named_keys_is_no_dispatch_key(decoding):
    assert not [guard.why for guard in decoding.guards.strict if "dispatch" in guard.why]


def test_marks_of_a_cache_are_followed_and_spare_a_graph(decoding):
    marks = lever(decoding, "mark_dynamic")
    assert marks == (
        "for item in cache.layers:\n    torch._dynamo.mark_dynamic(item.keys, 1)\n    torch._dynamo.mark_dynamic(item.values, 1)"
    )
    assert (decoding.graphs, decode(marks).graphs) == (3, 2)
    assert lever(decoding, "shape_buckets") is None  # a cache is no argument that could be padded


def test_marks_name_the_dimensions_that_changed_and_leave_one_graph():
    report, _ = read((7, 9, 12))
    marks = lever(report, "mark_dynamic")
    assert sorted(marks.splitlines()) == [
        "torch._dynamo.mark_dynamic(mask, 1)",
        "torch._dynamo.mark_dynamic(pixels, 1)",
    ]
    assert (report.graphs, read((7, 9, 12), marks)[0].graphs) == (2, 1)
    assert [guard.why for guard in report.guards.strict if "mark_dynamic(pixels, 1)" in guard.why]
    assert not [guard.why for guard in report.guards.strict if "mark_dynamic(pixels, 0)" in guard.why]


def test_shape_changes_lead_to_dynamic_and_buckets_that_work():
    report, model = read((7, 9, 12))
    model = pm.ShapeBuckets(
        model, eval(lever(report, "shape_buckets").partition("model, ")[2][:-1]), backend="eager"
    )
    assert "--shapes" in lever(report, "shape_buckets")
    assert lever(report, "dynamic") == "model = torch.compile(model, dynamic=True)"
    with torch.no_grad():
        assert model(torch.randn(2, 5, 8), torch.ones(2, 5)).shape == (2, 5, 8)
    (recompiles,) = [section for section in sections(report) if section.slug == "recompiles"]
    assert recompiles.table.rows[0][2].endswith(", dimension 1: 7 → 9 (any from now on), and 1 alike")


@pytest.mark.exhaustive
def test_a_size_of_one_is_marked_only_where_it_is_another():
    report, _ = read((7, 1, 9))
    marks = lever(report, "mark_dynamic")
    assert "if pixels.shape[1] > 1:\n    torch._dynamo.mark_dynamic(pixels, 1)" in marks
    assert read((7, 1, 9), marks)[0].graphs == 2
    only_one, _ = read((7, 1))
    assert lever(only_one, "mark_dynamic") is None


@pytest.mark.exhaustive
def test_blocks_are_named_as_the_model_names_them_and_other_numbered_modules_are_no_blocks():
    report, model = read((7,))
    report = msgspec.structs.replace(report, cost=msgspec.structs.replace(report.cost, compile_s=60.0))
    assert lever(report, "compile_blocks") == "for block in model.encoder.layers:\n    block.compile()"
    exec(lever(report, "compile_blocks"), {"model": model})
    assert all(layer._compiled_call_impl is not None for layer in model.encoder.layers)


def test_guards_of_alike_items_are_one_and_what_never_changed_is_only_counted(decoding):
    failed = [guard for guard in decoding.guards.strict if guard.num_failed]
    sources = [(guard.source, guard.type, guard.num_alike) for guard in failed]
    assert sources[0] == ("L['ids']", "TENSOR_MATCH", 0)
    assert {*sources[1:]} >= {
        ("L['cache'].layers[0].keys", "TENSOR_MATCH", 2),
        ("L['cache'].layers[0].values", "TENSOR_MATCH", 2),
    }
    assert len(sources) <= 5
    (chapter,) = [section for section in sections(decoding) if section.slug == "guards"]
    assert not [fact for fact in chapter.facts if "heads" in fact.label]
    assert chapter.facts[-1].label == "held in all calls"
