"""Every advice, followed: the same batches, and the effect that it promises; and programs that need none."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, TensorDataset

import pyrometer as pm
from pyrometer.loading.profiling.profile import profile_samples

MEAN, STD = 0.45, 0.22


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x


class Jitter:
    def __call__(self, x):
        return x + torch.rand(1)


def decode(x):
    time.sleep(0.001)
    return x * 2


def normalise(x):
    return (x - MEAN) / STD


class Images(Dataset):
    """Images that are decoded, and then changed at random."""

    def __init__(self, transform=None, length=48):
        self.transform = transform if transform is not None else Compose([decode, normalise, Jitter()])
        self.pixels = torch.randn(length, 3, 16, 16, generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return len(self.pixels)

    def __getitem__(self, index):
        return self.transform(self.pixels[index])


class Sentences(Dataset):
    """Token numbers of very different lengths."""

    def __init__(self, length=256):
        draw = torch.Generator().manual_seed(0)
        self.lengths = (torch.randint(4, 200, (length,), generator=draw)).tolist()
        self.offsets = torch.tensor([0, *self.lengths]).cumsum(0)
        self.tokens = torch.randint(1, 1000, (int(self.offsets[-1]),), generator=draw)

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, index):
        return self.tokens[self.offsets[index] : self.offsets[index + 1]]


def to_200(samples):
    padded = torch.zeros(len(samples), 200, dtype=torch.int64)
    for row, sample in zip(padded, samples, strict=True):
        row[: len(sample)] = sample
    return padded


def to_longest(samples):
    return pad_sequence(samples, batch_first=True)


def slow_padding(samples):
    longest = max(len(sample) for sample in samples)
    rows = []
    for sample in samples:
        row = [int(token) for token in sample]
        rows.append(row + [0] * (longest - len(row)))
    return torch.tensor(rows)


def slow_stack(samples):
    return torch.tensor(
        [[[[float(v) for v in row] for row in plane] for plane in sample] for sample in samples]
    )


def advice_on(loader, slug=None, **settings):
    advice = profile_samples(loader, budget_s=settings.pop("budget_s", 1.5), **settings).advice
    if slug is None:
        return {one.slug: one for one in advice}
    return next(one for one in advice if one.slug == slug)


def seconds(call):
    """Fastest of three."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def epoch(loader):
    torch.manual_seed(0)
    return list(loader)


@pytest.mark.measuring
def test_keeping_repeated_work_gives_the_same_batches_much_sooner():
    loader = DataLoader(Images(), batch_size=8)
    advice = advice_on(loader, "cache-repeated-work")
    assert "load → decode → normalise" in advice.why
    assert advice.saves_s > 0.004

    class Kept(Images):
        def __init__(self):
            super().__init__()
            *same, self.rest = self.transform.transforms
            self.kept = torch.stack([Compose(same)(pixel) for pixel in self.pixels])

        def __getitem__(self, index):
            return self.rest(self.kept[index])

    follow = DataLoader(Kept(), batch_size=8)
    for mine, theirs in zip(epoch(follow), epoch(loader), strict=True):
        assert torch.equal(mine, theirs)
    before, after = seconds(lambda: epoch(loader)), seconds(lambda: epoch(follow))
    assert before / after > 3
    assert before - after > 0.5 * advice.saves_s * len(loader)
    assert "cache-repeated-work" not in advice_on(follow)


@pytest.mark.measuring
def test_keeping_whole_samples_gives_the_same_batches_much_sooner():
    dataset = Images(Compose([decode, normalise]))
    loader = DataLoader(dataset, batch_size=8)
    advice = advice_on(loader, "cache-repeated-work")
    assert "the whole sample" in advice.why
    kept = [dataset[i] for i in range(len(dataset))]
    follow = DataLoader(kept, batch_size=8)
    for mine, theirs in zip(epoch(follow), epoch(loader), strict=True):
        assert torch.equal(mine, theirs)
    assert seconds(lambda: epoch(loader)) / seconds(lambda: epoch(follow)) > 3
    assert "cache-repeated-work" not in advice_on(follow)


@pytest.mark.measuring
def test_the_gain_of_keeping_is_shared_among_workers():
    one = advice_on(DataLoader(Images(), batch_size=8), "cache-repeated-work").saves_s
    two = advice_on(DataLoader(Images(), batch_size=8, num_workers=2), "cache-repeated-work").saves_s
    assert 1.4 < one / two < 2.8


@pytest.mark.measuring
def test_a_dataset_that_keeps_its_samples_itself_needs_no_cache():
    class Keeping(Images):
        def __init__(self):
            super().__init__(Compose([decode]))
            self.kept = {}

        def __getitem__(self, index):
            if index not in self.kept:
                self.kept[index] = super().__getitem__(index)
            return self.kept[index]

    assert "cache-repeated-work" not in advice_on(DataLoader(Keeping(), batch_size=8))


@pytest.mark.measuring
def test_leaving_a_slow_collate_function_out_gives_the_same_batches_sooner():
    dataset = TensorDataset(torch.rand(64, 3, 8, 8)).tensors[0]
    loader = DataLoader(dataset, batch_size=16, collate_fn=slow_stack)
    advice = advice_on(loader, "default-collate")
    follow = DataLoader(dataset, batch_size=16)
    for mine, theirs in zip(follow, loader, strict=True):
        assert torch.equal(mine, theirs)
    saved = (seconds(lambda: list(loader)) - seconds(lambda: list(follow))) / len(loader)
    assert saved / 5 < advice.saves_s < saved * 5
    assert "default-collate" not in advice_on(follow)


@pytest.mark.measuring
def test_putting_samples_together_by_torch_gives_the_same_batches_sooner():
    dataset = Sentences()
    loader = DataLoader(dataset, batch_size=32, collate_fn=slow_padding)
    advice = advice_on(loader, "vectorise-collate")
    assert "pad_sequence" in advice.effect
    assert "test_advice.py:" in advice.why
    follow = DataLoader(dataset, batch_size=32, collate_fn=to_longest)
    for mine, theirs in zip(follow, loader, strict=True):
        assert torch.equal(mine, theirs)
    assert seconds(lambda: list(loader)) / seconds(lambda: list(follow)) > 3
    assert "vectorise-collate" not in advice_on(follow)


def test_arrays_instead_of_lists_give_one_tensor_with_the_same_numbers():
    class Lists(Dataset):
        def __len__(self):
            return 64

        def __getitem__(self, index):
            return [float(index + place) for place in range(40)], index

    class Arrays(Lists):
        def __getitem__(self, index):
            sample = super().__getitem__(index)
            return torch.tensor(sample[0], dtype=torch.float64), sample[1]

    loader, follow = DataLoader(Lists(), batch_size=16), DataLoader(Arrays(), batch_size=16)
    advice = advice_on(loader, "arrays-not-lists")
    assert "sample[0] is a list of 40 numbers" in advice.why
    for mine, theirs in zip(follow, loader, strict=True):
        assert torch.equal(mine[0], torch.stack(theirs[0], 1))
        assert torch.equal(mine[1], theirs[1])
    assert not {"arrays-not-lists", "pack-tensors"} & advice_on(follow).keys()


@pytest.mark.measuring
def test_many_small_tensors_packed_are_the_same_tensors_in_one_copy():
    class Boards(Dataset):
        def __len__(self):
            return 32

        def __getitem__(self, index):
            return {f"x{place}": torch.full((3,), float(index + place)) for place in range(200)}

    loader = DataLoader(Boards(), batch_size=4)
    advice = advice_on(loader, "pack-tensors")
    assert "200 tensors" in advice.why
    batch = next(iter(loader))
    tensors = list(batch.values())
    device = "cpu"
    namespace = {"torch": torch, "tensors": tensors, "device": device}
    first, second = advice.effect.partition(", per dtype")[0].split("; then ")
    exec(first, namespace)
    views = eval(second, namespace)
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(views, tensors, strict=True))
    assert len({view.untyped_storage().data_ptr() for view in views}) == 1
    flat = namespace["flat"]
    one_by_one = seconds(lambda: [tensor.clone() for tensor in tensors])
    assert one_by_one / seconds(flat.clone) > 10
    assert "pack-tensors" not in advice_on(DataLoader([flat] * 8, batch_size=4))


PIXELS = torch.randint(0, 256, (32, 3, 32, 32), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)


@pytest.mark.parametrize(
    ("wide", "back"),
    [
        (PIXELS.float() / 255, lambda x: x.to(torch.float32).div(255)),
        (PIXELS.long(), lambda x: x.to(torch.int64)),
    ],
    ids=["float images", "int64 images"],
)
def test_narrower_types_give_the_same_values_in_a_fraction_of_the_bytes(wide, back):
    loader, follow = DataLoader(wide, batch_size=8), DataLoader(PIXELS, batch_size=8)
    advice = advice_on(loader, "narrower-dtype")
    assert "uint8" in advice.effect
    assert "the same values" in advice.effect
    for mine, theirs in zip(follow, loader, strict=True):
        assert torch.equal(back(mine), theirs)
        assert mine.nbytes * 4 <= theirs.nbytes
    assert "narrower-dtype" not in advice_on(follow)


def test_normalised_images_are_made_on_the_device_with_rounding_at_most():
    wide = (PIXELS.float() / 255 - MEAN) / STD
    advice = advice_on(DataLoader(wide, batch_size=8), "narrower-dtype")
    assert "differ by rounding" in advice.effect
    for mine, theirs in zip(DataLoader(PIXELS, batch_size=8), DataLoader(wide, batch_size=8), strict=True):
        torch.testing.assert_close(mine.float().div(255).sub(MEAN).div(STD), theirs)


def test_float64_from_numpy_is_halved():
    wide = np.random.default_rng(0).random((64, 1024))
    loader = DataLoader(wide, batch_size=8)
    advice = advice_on(loader, "narrower-dtype")
    assert "float32" in advice.effect
    follow = DataLoader(wide.astype(np.float32), batch_size=8)
    for mine, theirs in zip(follow, loader, strict=True):
        torch.testing.assert_close(mine, theirs.float())
        assert mine.nbytes * 2 == theirs.nbytes
    assert "narrower-dtype" not in advice_on(follow)


def padding_now(loader):
    (padding,) = profile_samples(loader, budget_s=1.0).padding or [None]
    return padding


def test_padding_to_the_longest_of_a_batch_leaves_what_was_promised():
    dataset = Sentences()
    dataset.lengths = [length // 3 + 1 for length in dataset.lengths]
    dataset.offsets = torch.tensor([0, *dataset.lengths]).cumsum(0)
    loader = DataLoader(dataset, batch_size=16, collate_fn=to_200)
    before = padding_now(loader)
    assert "pad-to-longest" in advice_on(loader)
    follow = DataLoader(dataset, batch_size=16, collate_fn=to_longest)
    after = padding_now(follow)
    assert after.share == pytest.approx(before.longest_share, abs=0.02)
    assert before.share - after.share > 0.2
    for mine, theirs in zip(follow, loader, strict=True):
        assert torch.equal(mine, theirs[:, : mine.shape[1]])
        assert not theirs[:, mine.shape[1] :].any()
    assert "pad-to-longest" not in advice_on(follow)


def test_batches_of_like_length_leave_about_what_was_promised():
    dataset = Sentences(1024)
    loader = DataLoader(dataset, batch_size=16, shuffle=True, collate_fn=to_longest)
    before = padding_now(loader)
    advice = advice_on(loader, "bucket-by-length")
    assert "pyrometer.BucketBatchSampler" in advice.effect
    sampler = pm.BucketBatchSampler(dataset.lengths, batch_size=16, num_buckets=32)
    follow = DataLoader(dataset, batch_sampler=sampler, collate_fn=to_longest)
    after = padding_now(follow)
    assert before.share > 0.3
    assert after.share < before.sorted_share + 0.05
    seen = sorted(int((row != 0).sum()) for batch in follow for row in batch)
    assert seen == sorted(dataset.lengths), "every sample once"
    assert "bucket-by-length" not in advice_on(follow)


MEASURE_WORKER = textwrap.dedent("""
    import os, sys
    import numpy as np

    texts = [f"/data/train/image_{number:08d}.png" for number in range(400_000)]
    held = texts if sys.argv[1] == "list" else np.array(texts, dtype="S")
    del texts

    def private():
        with open("/proc/self/smaps_rollup") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith("Private_Dirty"))

    pid = os.fork()
    if pid == 0:
        before = private()
        total = 0
        for place in range(len(held)):
            total += len(held[place])
        print(private() - before, flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
""")


def growth_of_a_worker(kind):
    """KiB that a forked process gets for itself by looking at every item."""
    run = subprocess.run(
        [sys.executable, "-c", MEASURE_WORKER, kind], capture_output=True, text=True, check=True
    )
    return int(run.stdout)


class Texts(Dataset):
    def __init__(self, texts):
        self.texts = texts

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        text = self.texts[index]
        return text.decode() if isinstance(text, bytes) else text


@pytest.mark.exhaustive
@pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="needs Linux")  # noqa: PTH110
def test_texts_in_one_array_are_the_same_texts_and_cost_workers_next_to_nothing():
    texts = [f"/data/train/image_{number:08d}.png" for number in range(400_000)]
    loader = DataLoader(Texts(texts), batch_size=64, num_workers=2)
    advice = advice_on(loader, "pack-objects")
    assert "numpy.array(texts, dtype='S')" in advice.effect
    packed = Texts(np.array(texts, dtype="S"))
    assert [packed[index] for index in range(0, 400_000, 999)] == texts[::999]
    assert "pack-objects" not in advice_on(DataLoader(packed, batch_size=64, num_workers=2))
    measured = growth_of_a_worker("list") * 1024
    (held,) = profile_samples(loader, budget_s=0.5).held
    assert held.private_bytes == pytest.approx(measured, rel=0.35)
    assert measured / max(growth_of_a_worker("array") * 1024, 4096) > 8


def test_a_dataset_with_functions_of_modules_can_be_sent_to_workers():
    broken = Images(Compose([lambda x: x * 2, Jitter()]))
    advice = advice_on(DataLoader(broken, batch_size=8), "picklable-dataset")
    assert "lambda" in advice.why
    assert "picklable-dataset" not in advice_on(DataLoader(Images(Compose([decode, Jitter()])), batch_size=8))


def test_data_in_tensors_is_shared_instead_of_sent():
    class Arrays(Dataset):
        def __init__(self, data):
            self.data = data

        def __len__(self):
            return len(self.data)

        def __getitem__(self, index):
            return torch.as_tensor(self.data[index])

    # pickled by reference to a class that modules can find
    globals()["Arrays"] = Arrays
    Arrays.__qualname__ = "Arrays"
    data = np.random.default_rng(0).random((2560, 4096), dtype=np.float32) * 2 - 1
    data = np.concatenate([data, data])
    heavy, light = Arrays(data), Arrays(torch.from_numpy(data))
    before, after = profile_samples(heavy, budget_s=2.0), profile_samples(light, budget_s=2.0)
    assert "lighter-dataset" in {advice.slug for advice in before.advice}
    assert "lighter-dataset" not in {advice.slug for advice in after.advice}
    assert before.pickled.num_bytes > 1000 * after.pickled.num_bytes
    assert torch.equal(heavy[3], light[3])


@pytest.mark.measuring
def test_going_to_a_sample_directly_gives_the_same_in_the_time_of_the_first():
    lines = [f"{number},{number * 2}" for number in range(4000)]
    text = "\n".join(lines)
    ends = np.cumsum([len(line) + 1 for line in lines])
    starts = [0, *ends[:-1].tolist()]

    class Scanning(Dataset):
        def __len__(self):
            return len(lines)

        def __getitem__(self, index):
            position = 0
            for _ in range(index):
                position = text.index("\n", position) + 1
            return torch.tensor([float(part) for part in text[position:].split("\n", 1)[0].split(",")])

    class Direct(Scanning):
        def __getitem__(self, index):
            line = text[starts[index] : ends[index] - 1]
            return torch.tensor([float(part) for part in line.split(",")])

    slow, fast = Scanning(), Direct()
    advice = advice_on(DataLoader(slow, batch_size=8), "constant-time-access")
    assert "offset" in advice.effect
    assert all(torch.equal(slow[index], fast[index]) for index in range(0, 4000, 400))
    assert "constant-time-access" not in advice_on(DataLoader(fast, batch_size=8))
    assert seconds(lambda: slow[3900]) / seconds(lambda: fast[3900]) > 10


class Augmented(Images):
    """Everything about it is random."""

    def __getitem__(self, index):
        return self.transform(torch.rand(3, 16, 16))


QUIET = {
    "tensors": lambda: DataLoader(
        TensorDataset(torch.randn(256, 8), torch.arange(256)), batch_size=16, shuffle=True
    ),
    "bytes as images": lambda: DataLoader(PIXELS, batch_size=8),
    "random augmentation": lambda: DataLoader(Augmented(Jitter()), batch_size=8, num_workers=2),
    "tokens of one length": lambda: DataLoader(torch.randint(1, 999, (64, 32)), batch_size=8),
    "labels of several classes": lambda: DataLoader(
        TensorDataset(torch.randn(64, 8), (torch.rand(64, 20) < 0.1).long()), batch_size=8
    ),
    "cheap transforms": lambda: DataLoader(Images(Compose([torch.neg])), batch_size=8),
    "a stream": lambda: DataLoader(TensorDataset(torch.randn(64, 3)), batch_size=None),
    "few short texts": lambda: DataLoader(Texts([f"sentence {n}" for n in range(500)]), batch_size=8),
    "some small tensors": lambda: DataLoader(
        [{f"x{n}": torch.randn(4) for n in range(6)}] * 32, batch_size=4
    ),
}


@pytest.mark.measuring
@pytest.mark.parametrize("make", QUIET.values(), ids=list(QUIET))
def test_programs_that_need_no_advice_get_none(make):
    assert advice_on(make()) == {}


@pytest.mark.measuring
def test_predicted_gains_come_first():
    advice = profile_samples(DataLoader(Images(), batch_size=8, collate_fn=slow_stack), budget_s=2.0).advice
    gains = [one.saves_s for one in advice]
    assert len(advice) >= 2
    assert all(before >= after for before, after in pairwise(gains))
