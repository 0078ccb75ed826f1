from __future__ import annotations

import re
from itertools import islice

import pytest
import torch


@pytest.fixture(scope="module")
def train(load_example):
    return load_example("gpt/train.py")


@pytest.fixture(scope="module")
def gpt_workload(load_example):
    return load_example("gpt/workload.py")


@pytest.mark.slow
def test_training_lowers_the_loss_evaluates_and_saves(run_example, tmp_path):
    arguments = (
        "--steps 16 --batch-size 4 --log-every 4 --eval-every 8 --eval-batches 2 --workers 1 --warmup 5"
    )
    saved = tmp_path / "gpt.pt"
    output = run_example("gpt/train.py", *arguments.split(), "--checkpoint", str(saved), "--sample", "5")
    losses = [float(loss) for loss in re.findall(r"^step +\d+  loss ([\d.]+)", output, re.MULTILINE)]
    validation = [float(loss) for loss in re.findall(r"validation loss ([\d.]+)", output)]
    assert len(losses) == 4
    assert len(validation) == 2
    assert losses[0] > losses[-1] + 0.5
    assert validation[0] > validation[1]
    assert "The Rays of Light " in output
    checkpoint = torch.load(saved, weights_only=True)
    assert checkpoint["step"] == 16
    assert checkpoint["config"]["layers"] == 4


def test_the_learning_rate_rises_in_a_line_and_falls_along_a_cosine(train):
    factor = train.warmup_then_cosine(num_warmup=10, num_steps=110)
    assert [factor(0), factor(4), factor(9)] == pytest.approx([0.1, 0.5, 1.0])
    assert [factor(10), factor(60), factor(110), factor(500)] == pytest.approx([1.0, 0.55, 0.1, 0.1])


def test_batches_go_on_into_the_next_epoch_and_end_with_the_steps(train):
    assert list(train.batches(["a", "b"], 5)) == ["a", "b", "a", "b", "a"]


def test_the_model_is_small_tied_and_causal(train):
    torch.manual_seed(0)
    gpt = train.GPT(train.GPTConfig()).eval()
    assert 1e6 < sum(p.numel() for p in gpt.parameters()) < 4e6
    assert gpt.head.weight is gpt.token.weight
    tokens = torch.randint(256, (1, 12))
    changed = tokens.clone()
    changed[0, 8] = (changed[0, 8] + 1) % 256
    before, after = gpt(tokens)[0], gpt(changed)[0]
    torch.testing.assert_close(before[:8], after[:8])
    assert not torch.allclose(before[8:], after[8:])


def test_the_text_is_plain_of_the_promised_size_and_survives_the_tokenizer(train):
    text, held_out = train.read_split()
    assert (text + held_out).isascii()
    assert 100_000 < len(text) + len(held_out) < 300_000
    assert train.decode(train.encode(held_out)) == held_out


def test_workload_trains_on_windows_and_restores_the_model(gpt_workload):
    work = gpt_workload.workload()
    with work.open() as session:
        weight = session.model.head.weight
        before = weight.clone()
        losses = [float(session.step(session.prepare())) for _ in range(5)]
        assert not torch.equal(weight, before)
    assert losses[-1] < losses[0]
    assert torch.equal(weight, before)
    assert (work.unit, session.units_per_step, session.padding_ratio) == ("tokens", 8 * 128, None)


def test_padded_workload_counts_the_effective_tokens(gpt_workload):
    work = gpt_workload.padded()
    with work.open() as session:
        for _ in range(3):
            assert session.step(session.prepare()).isfinite()
    work.batches.generator.manual_seed(0)
    masks = [batch["mask"] for batch in islice(work.batches, 3)]
    assert session.units_per_step == sum(int(mask.sum()) for mask in masks) / 3
    assert 0.1 < session.padding_ratio < 0.6


def test_padding_holds_whole_sentences_and_does_not_touch_the_loss(gpt_workload):
    torch.manual_seed(0)
    batch = gpt_workload.pad([torch.tensor([5, 6, 7, 8]), torch.tensor([9, 10])])
    assert batch["tokens"].tolist() == [[5, 6, 7], [9, 10, 0]]
    assert batch["targets"].tolist() == [[6, 7, 8], [10, 0, 0]]
    assert batch["mask"].tolist() == [[True, True, True], [True, False, False]]
    gpt = gpt_workload.GPT(gpt_workload.GPTConfig())
    loss = gpt_workload.masked_loss(gpt, batch)
    other = {
        name: values.masked_fill(~batch["mask"], 200) for name, values in batch.items() if name != "mask"
    }
    torch.testing.assert_close(gpt_workload.masked_loss(gpt, other | {"mask": batch["mask"]}), loss)
