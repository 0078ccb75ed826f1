"""PYR310: computing on padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding

HEAD = "import torch\n"

FIRES = {
    "a collate function": """
def collate(texts):
    return tokenizer(texts, padding="max_length", max_length=512)  # <-
""",
    "an item": """
class Texts(Dataset):
    def __getitem__(self, index):
        return self.tokenizer(self.texts[index], truncation=True, padding="max_length")  # <-
""",
    "the older name, in a training": """
batch = tokenizer.batch_encode_plus(texts, padding="max_length")  # <-
model(**batch).loss.backward()
""",
    "for a trainer": """
from transformers import Trainer
trainer = Trainer(train_dataset=texts.map(lambda text: tokenizer(text["text"], padding="max_length")))  # <-
""",
}

SILENT = {
    "to the longest": 'batch = tokenizer(texts, padding="longest")\nmodel(**batch).loss.backward()\n',
    "a model that needs it, not trained here": 'tokens = tokenizer(texts, padding="max_length", max_length=77)\n',
    "padding of a convolution": 'conv = torch.nn.Conv2d(3, 8, 3, padding="same")\n',
    "one fixed prompt": 'prompt = tokenizer("a photo", padding="max_length")\nloss.backward()\n',
    "something else": 'batch = feature_extractor(images, padding="max_length")\n',
    "static shapes are compiled": """
model = torch.compile(model)
batch = tokenizer(texts, padding="max_length")
model(**batch).loss.backward()
""",
    "static shapes are needed": """
import torch_xla.core.xla_model as xm
batch = tokenizer(texts, padding="max_length")
model(**batch).loss.backward()
""",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_fires_at_the_argument(
    text: str, lines: Callable[..., list[int]], marked: Callable[[str], list[int]]
) -> None:
    assert lines("PYR310", HEAD + text) == marked(HEAD + text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_is_silent(text: str, lines: Callable[..., list[int]]) -> None:
    assert lines("PYR310", HEAD + text) == []


def test_finds_its_example_and_not_the_replacement(speaks_as_documented: Callable[[str], None]) -> None:
    speaks_as_documented("PYR310")


class Masked(torch.nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return x * mask


def inference(lengths: list[int]) -> Any:
    import pyrometer as pm

    width = max(lengths)
    mask = torch.arange(width)[None, :] < torch.tensor(lengths)[:, None]
    return pm.Inference(Masked(), (torch.randn(len(lengths), width), mask), unit="tokens", mask=1)


def test_measured_padding_is_told_with_a_bound_of_the_gain(
    observe: Callable[..., Case], findings: Callable[..., list[Finding]]
) -> None:
    (finding,) = findings("PYR310", observe(inference([100, 10, 10, 40]), "measurement"))
    assert finding.evidence["padding_ratio"] == pytest.approx(0.6)
    assert finding.advice.gain is not None
    assert finding.advice.gain.ratio_low == pytest.approx(0.4 / 0.9)
    assert finding.advice.lever == "shape_buckets"


def test_samples_of_like_length_are_left_alone(
    observe: Callable[..., Case], findings: Callable[..., list[Finding]]
) -> None:
    assert findings("PYR310", observe(inference([100, 98, 95, 97]), "measurement")) == []


def test_the_advised_sampler_leaves_less_padding() -> None:
    import pyrometer as pm

    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(1, 200, (400,), generator=generator).tolist()

    def padding(batches: list[list[int]]) -> float:
        places = sum(len(batch) * max(lengths[i] for i in batch) for batch in batches)
        return 1 - sum(lengths) / places

    plain = [list(range(start, start + 20)) for start in range(0, 400, 20)]
    bucketed = [list(batch) for batch in pm.BucketBatchSampler(lengths, batch_size=20)]
    assert sorted(i for batch in bucketed for i in batch) == list(range(400))
    assert padding(bucketed) < padding(plain) / 2


def test_the_advice_of_the_sample_profile_is_carried_where_nothing_was_measured(
    loading: Callable[..., Any],
    advice: Callable[..., Any],
    findings: Callable[..., list[Finding]],
) -> None:
    report = loading(advice=[advice("bucket-by-length")])
    (finding,) = findings("PYR310", Case(target="a", loading=report))
    assert finding.resource == "padding"
