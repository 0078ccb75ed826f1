"""The parts that profiling is made of: fingerprints, padding, types, pipelines, held objects, pickles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.utils.data import Dataset

from pyrometer.loading.profiling.contents import narrower_type, number_lists, transfer_time
from pyrometer.loading.profiling.fetching import MadeBatch
from pyrometer.loading.profiling.held import held_objects
from pyrometer.loading.profiling.leaves import fingerprint, leaves_of, num_bytes_of
from pyrometer.loading.profiling.padding import PaddedBatch, padding_of, padding_share
from pyrometer.loading.profiling.pickling import pickled_dataset
from pyrometer.loading.profiling.pipeline import find_pipeline
from pyrometer.loading.profiling.profile import profile_samples


@dataclass
class Pair:
    x: torch.Tensor
    y: int


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x


class RandomFlip:
    def __call__(self, x):
        return x.flip(-1) if torch.rand(1) < 0.5 else x


class Rare:
    """Says of itself that it acts with a probability, and nearly never does."""

    p = 1e-9

    def __call__(self, x):
        return x


class Data(Dataset):
    def __init__(self, transform=None, length=20):
        self.transform = transform
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        x = torch.arange(12.0).reshape(3, 4) + index
        return self.transform(x) if self.transform is not None else x


def double(x):
    return x * 2


def test_fingerprints_tell_what_differs_and_what_cannot_be_told():
    same = [
        torch.tensor([1.0, float("nan")]),
        np.arange(3),
        ("a", 1, None, 2.5),
        Pair(torch.ones(2), 3),
        torch.arange(6).reshape(2, 3).t(),
    ]
    for value in same:
        assert fingerprint(value) == fingerprint(value) is not None
    assert fingerprint(torch.ones(2)) != fingerprint(torch.ones(2, dtype=torch.float64))
    assert fingerprint(Pair(torch.ones(2), 3)) != fingerprint(Pair(torch.ones(2), 4))
    assert fingerprint([1]) != fingerprint([True])
    assert fingerprint(lambda: 1) is None
    assert fingerprint(torch.eye(2).to_sparse()) is None


def test_paths_say_where_in_a_batch_something_is():
    batch = {"x": (torch.zeros(1), Pair(torch.ones(1), 3))}
    assert [path for path, _ in leaves_of(batch)] == ["['x'][0]", "['x'][1].x", "['x'][1].y"]
    assert num_bytes_of(batch) == 4 + 4 + 8


def made(batch, samples=()):
    return MadeBatch(list(samples), batch, 0.0, 0.0)


IDS = torch.tensor([[5, 6, 7, 8, 9, 3], [4, 2, 1, 0, 0, 0], [4, 2, 0, 0, 0, 0]])


@pytest.mark.parametrize(
    ("batch", "samples", "source"),
    [
        (
            [IDS],
            [(row[:length],) for row, length in zip(IDS, (6, 3, 2), strict=True)],
            "lengths of the samples",
        ),
        ({"ids": IDS, "attention_mask": IDS != 0}, [], "mask"),
        ({"ids": IDS, "padding_mask": (IDS == 0).long()}, [], "mask"),
        ({"ids": IDS, "lengths": torch.tensor([6, 3, 2])}, [], "lengths"),
        ({"ids": IDS}, [], "constant tails"),
        ({"x": (IDS != 0).float()[..., None].expand(3, 6, 4) * 2.5}, [], "constant tails"),
    ],
    ids=["samples", "mask", "inverted", "lengths", "tails", "vectors"],
)
def test_padding_is_found_however_it_is_told(batch, samples, source):
    padding = padding_of([made(batch, samples)])[0]
    assert padding.source == source
    assert padding.share == pytest.approx(7 / 18)
    assert (padding.longest, padding.padded_to, padding.num_samples) == (6, 6, 3)


@pytest.mark.parametrize(
    "batch",
    [
        {"ids": torch.randint(1, 100, (8, 16), generator=torch.Generator().manual_seed(0))},
        {"labels": torch.eye(8, 16, dtype=torch.int64)},
        {"image": torch.zeros(8, 3, 16, 16)},
        {"features": torch.relu(torch.randn(8, 16, 4, generator=torch.Generator().manual_seed(0)))},
        {"ids": torch.ones(8, 16, dtype=torch.int64)},
        {"ids": IDS, "attention_mask": torch.ones_like(IDS)},
        {"ids": IDS, "padding_mask": torch.zeros_like(IDS)},
        {"y": torch.tensor([1, 2, 3])},
    ],
    ids=[
        "tokens",
        "classes",
        "black image",
        "sparse features",
        "constant",
        "all real",
        "none padded",
        "labels",
    ],
)
def test_no_padding_is_seen_where_there_is_none(batch):
    assert padding_of([made(batch)]) == []


@given(
    groups=st.lists(st.lists(st.integers(1, 200), min_size=4, max_size=4), min_size=1, max_size=6),
    extra=st.integers(0, 50),
)
def test_shares_of_padding_are_in_order(groups, extra):
    longest = max(max(group) for group in groups) + extra
    padding = padding_share("x", [PaddedBatch(group, longest, "mask") for group in groups])
    assert 0 <= padding.longest_share <= padding.share < 1
    assert 0 <= padding.sorted_share <= padding.share + 1e-9


GENERATOR = torch.Generator().manual_seed(0)
BYTES = torch.randint(0, 256, (4, 3, 32, 32), generator=GENERATOR)
MEAN, STD = torch.tensor([0.4, 0.5, 0.6])[:, None, None], torch.tensor([0.2, 0.3, 0.25])[:, None, None]


@pytest.mark.parametrize(
    ("tensor", "fits", "exact", "scale"),
    [
        (BYTES.float() / 255, "torch.uint8", True, 1 / 255),
        (BYTES.float(), "torch.uint8", True, None),
        ((BYTES.float() / 255 - MEAN) / STD, "torch.uint8", False, None),
        (BYTES.permute(0, 2, 3, 1).float() / 255, "torch.uint8", True, 1 / 255),
        (BYTES, "torch.uint8", True, None),
        (BYTES * 100, "torch.int16", True, None),
        (BYTES * 1000, "torch.int32", True, None),
        (torch.rand(8, 4, generator=GENERATOR, dtype=torch.float64), "torch.float32", False, None),
        (torch.zeros(8, 4, dtype=torch.float64), "torch.float32", True, None),
    ],
    ids=["scaled", "float bytes", "normalised", "last", "int64", "int16", "int32", "rounded", "float64"],
)
def test_types_that_are_wider_than_their_values_are_found(tensor, fits, exact, scale):
    kind = narrower_type("x", tensor)
    assert (kind.fits, kind.exact) == (fits, exact)
    assert kind.scale == (None if scale is None else pytest.approx(scale))
    assert kind.saved_bytes < kind.num_bytes


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randn(4, 3, 32, 32, generator=GENERATOR),
        BYTES.to(torch.uint8),
        torch.randint(0, 50_000, (64, 512), generator=GENERATOR),
        torch.zeros(4, 3, 64, 64),
        torch.rand(8, 4),
        torch.zeros(0, 3, 4),
        torch.ones(4, 32, 64, dtype=torch.bool),
        torch.full((4, 3, 32, 32), float("nan")),
    ],
    ids=["floats", "bytes", "tokens", "constant", "small", "empty", "bool", "nan"],
)
def test_types_that_are_right_are_left_alone(tensor):
    assert narrower_type("x", tensor) is None


def test_many_small_tensors_cost_their_latency():
    assert transfer_time([100] * 50) > 40 * transfer_time([5000])
    assert transfer_time([], latency_s=1.0) == 0
    assert transfer_time([10, 10], latency_s=1.0, bytes_per_s=10.0) == 4.0


def test_lists_of_numbers_are_found_in_samples_and_short_ones_are_not():
    sample = ([1.0] * 30, (1, 2, 3), {"box": [0] * 16, "name": "x" * 40})
    assert [(number_list.path, number_list.length) for number_list in number_lists(sample)] == [
        ("[0]", 30),
        ("[2]['box']", 16),
    ]


def test_the_longest_part_of_a_pipeline_that_repeats_is_found_and_the_pipeline_is_left_alone():
    steps = [double, torch.sqrt, RandomFlip(), double]
    compose = Compose(list(steps))
    data = Data(compose)
    work = profile_samples(data, budget_s=1.0).repeated
    assert [(stage.name, stage.same) for stage in work.stages][:4] == [
        ("load", True),
        ("double", True),
        ("sqrt", True),
        ("RandomFlip", False),
    ]
    assert work.num_same_stages == 3
    assert work.cached_bytes == 48
    assert work.cached_total_bytes == 48 * 20
    assert work.same_share < 1
    assert compose.transforms == steps
    assert data.transform is compose


@pytest.mark.parametrize("kind", [list, tuple])
def test_steps_may_be_an_attribute_of_the_dataset(kind):
    class Own(Data):
        def __init__(self):
            super().__init__()
            self.transforms = kind([double, RandomFlip()])

        def __getitem__(self, index):
            x = super().__getitem__(index)
            for transform in self.transforms:
                x = transform(x)
            return x

    data = Own()
    work = profile_samples(data, budget_s=1.0).repeated
    assert work.num_same_stages == 2
    assert isinstance(data.transforms, kind)
    assert data.transforms[0] is double


def test_a_single_transform_splits_loading_from_it():
    work = profile_samples(Data(RandomFlip()), budget_s=1.0).repeated
    assert [stage.name for stage in work.stages] == ["load", "RandomFlip", "rest"]
    assert work.num_same_stages == 1


def test_modules_and_pipelines_by_other_names_are_seen():
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.transforms = [double, RandomFlip()]

        def forward(self, x):
            for transform in self.transforms:
                x = transform(x)
            return x

    class Other(Dataset):
        def __init__(self):
            self.augment = Module()

        def __len__(self):
            return 12

        def __getitem__(self, index):
            return self.augment(torch.arange(4.0) + index)

    work = profile_samples(Other(), budget_s=1.0).repeated
    assert [stage.name for stage in work.stages] == ["load", "double", "RandomFlip", "rest"]
    assert work.num_same_stages == 2


def test_a_step_that_calls_itself_random_counts_as_random_though_it_never_acts():
    work = profile_samples(Data(Compose([double, Rare(), double])), budget_s=1.0).repeated
    assert work.same_share == 1.0
    assert work.num_same_stages == 2


def test_a_pipeline_that_is_run_twice_per_sample_cannot_be_split():
    class Views(Data):
        def __getitem__(self, index):
            return super().__getitem__(index), super().__getitem__(index)

    work = profile_samples(Views(Compose([double, RandomFlip()])), budget_s=1.0).repeated
    assert work.stages == []
    assert work.same_s is None


def test_randomness_that_acts_seldom_is_bounded_not_denied():
    work = profile_samples(Data(), budget_s=1.0).repeated
    assert work.same_share == 1.0
    assert work.unseen_below == pytest.approx(3 / work.num_comparisons)


def test_the_steps_stay_what_isinstance_and_attributes_say():
    class Typed:
        strength = 3

        def __call__(self, x):
            return x

    class Strict(Compose):
        def __call__(self, x):
            assert all(isinstance(step, Typed) and step.strength == 3 for step in self.transforms)
            return super().__call__(x)

    work = profile_samples(Data(Strict([Typed(), Typed()])), budget_s=1.0).repeated
    assert len(work.stages) == 4


def test_there_is_no_pipeline_where_nothing_looks_like_one():
    assert find_pipeline(Data()) is None
    assert find_pipeline([1, 2]) is None


def test_held_objects_are_counted_and_arrays_are_not():
    data = Data()
    data.paths = [f"/data/image_{number}.png" for number in range(5000)]
    data.boxes = {number: (float(number), [1.5, 2.5]) for number in range(1000, 3000)}
    data.packed = np.array(data.paths, dtype="S")
    data.objects = np.array(data.paths, dtype=object)
    data.small = list(range(100))
    data.tensor = torch.arange(100_000)
    data.flags = [True, None, 1] * 1000
    found = {one.path: one for one in held_objects(data)}
    assert set(found) == {"Data.paths", "Data.boxes", "Data.objects"}
    assert found["Data.paths"].kind == "list of str"
    assert found["Data.paths"].num_objects == 5000
    assert found["Data.paths"].private_bytes == pytest.approx(5000 * 70, rel=0.2)
    assert found["Data.boxes"].num_objects == pytest.approx(2000 * 4, rel=0.01), "1.5 and 2.5 are shared"


def test_pickling_counts_without_sharing_tensors_and_stops_at_its_limits():
    tensor = torch.zeros(1000)
    dataset = pickled_dataset({"x": tensor, "array": np.zeros(10_000)})
    assert dataset.tensor_bytes == 4000
    assert 80_000 <= dataset.num_bytes < 81_000
    assert not tensor.is_shared()
    assert pickled_dataset([np.zeros(10_000), np.ones(10_000)], limit_bytes=100_000).complete is False
    assert "pickle" in pickled_dataset(lambda: 1).failure.lower()
