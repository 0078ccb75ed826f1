"""Before a version is served: recipes are applied and proved, buckets checked, batches sized, bad models refused."""

import pytest
import torch
from torch import nn

from pyrometer.errors import InputError
from pyrometer.hardware.environment import read_environment
from pyrometer.listening import token_from
from pyrometer.serving.running.program import Rows
from pyrometer.serving.running.worker import Worker
from pyrometer.serving.settings import TOKEN, ServeSettings, load_serve_settings
from pyrometer.serving.starting.preparing import Preparing, row_edges
from pyrometer.serving.starting.source import Source, source_of
from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.outcome import LeverOutcome
from pyrometer.tuning.recipe.making import proved_levers
from pyrometer.tuning.recipe.recipe import Recipe
from pyrometer.tuning.recipe.signature import signature_of
from pyrometer.workload.inference import Inference

WIDTH = 8


@pytest.fixture
def prepare():
    made = []

    def start(work, buckets=None, *, recipe=None, **settings):
        settings = ServeSettings(**{"batch": 4, "budget_s": 0.01, "threads": 1, **settings})
        worker = Worker()
        try:
            prepared = Preparing(settings, buckets or {}, lambda _: None).prepare(
                Source(work=work, recipe=recipe), "1", worker
            )
        except BaseException:
            worker.end()
            raise
        made.append(prepared)
        return prepared

    yield start
    for prepared in made:
        prepared.program.worker.end()
        prepared.close()


def run(prepared, requests, bucket=()):
    return prepared.program.worker.call(lambda: prepared.program.run(requests, bucket))


class Mixing(nn.Module):
    def forward(self, x):
        return x - x.mean(0)


class Pooled(nn.Module):
    """Means over a sequence: right without padding, and with it where the mask says what is real."""

    def __init__(self, looks):
        super().__init__()
        self.embed = nn.Embedding(50, WIDTH)
        self.looks = looks

    def forward(self, ids, attention_mask=None):
        x = self.embed(ids)
        if attention_mask is None or not self.looks:
            return x.mean(1), x
        weights = attention_mask.unsqueeze(-1).to(x.dtype)
        return (x * weights).sum(1) / weights.sum(1), x


def test_a_model_that_mixes_rows_is_not_served(prepare):
    with pytest.raises(InputError, match="requests in one batch: off by"):
        prepare(Inference(Mixing(), torch.randn(1, WIDTH)))


def test_a_model_that_takes_one_number_of_rows_is_not_served(prepare):
    class Fixed(nn.Module):
        def forward(self, x):
            return x.reshape(2, WIDTH)

    with pytest.raises(InputError, match="what is served takes any number"):
        prepare(Inference(Fixed(), torch.randn(2, WIDTH)))


def test_a_model_without_rows_in_its_output_is_not_served(prepare):
    class Total(nn.Module):
        def forward(self, x):
            return x.sum()

    with pytest.raises(InputError, match="one row per input row"):
        prepare(Inference(Total(), torch.randn(2, WIDTH)))


def test_requests_of_several_lengths_share_buckets_and_get_what_the_model_alone_says(prepare):
    model = Pooled(looks=True).eval()
    prepared = prepare(Inference(model, torch.randint(0, 50, (2, 6))), {"ids": {1: [8, 16]}})
    shaping = prepared.program.shaping
    assert shaping.fitting.masking.mask.name == "attention_mask"
    ids = [torch.randint(0, 50, (rows, length)) for rows, length in ((1, 3), (2, 8), (1, 5))]
    requests = [Rows([one.numpy()], len(one), (one.shape[1],)) for one in ids]
    for one, (mean, tokens) in zip(ids, run(prepared, requests, (8,)), strict=True):
        with torch.no_grad():
            expected_mean, expected_tokens = model(one)
        torch.testing.assert_close(torch.from_numpy(mean), expected_mean)
        torch.testing.assert_close(torch.from_numpy(tokens), expected_tokens)
    assert {point.bucket for point in prepared.points} == {"8", "16"}
    with pytest.raises(InputError, match="legal is up to 16"):
        shaping.bucket((17,))


def test_a_model_that_padding_changes_is_not_served_in_buckets(prepare):
    with pytest.raises(InputError, match="padding"):
        prepare(Inference(Pooled(looks=False), torch.randint(0, 50, (2, 6))), {"ids": {1: [8, 16]}})


def test_the_batch_is_sized_within_the_limits(prepare):
    work = Inference(nn.Linear(WIDTH, WIDTH), torch.randn(1, WIDTH))
    assert prepare(work, batch=None, most_batch=16, latency_s=10.0).most_rows == 16
    tight = prepare(work, batch=None, most_batch=1 << 14, memory_bytes=1 << 16)
    assert tight.most_rows < 1 << 11
    assert tight.limited_by == "--memory"


def test_torch_is_left_as_it_was(prepare):
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Dropout(0.5)).train()
    work = Inference(model, torch.randn(1, WIDTH))
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    prepared = prepare(work)
    prepared.close()
    assert model.training
    assert model[1].training
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


def test_threads_are_set_in_the_thread_of_the_model(prepare):
    prepared = prepare(Inference(nn.Linear(WIDTH, WIDTH), torch.randn(1, WIDTH)), threads=1)
    assert prepared.threads == 1
    again = prepared.program.worker.again()
    assert again.call(torch.get_num_threads) == 1
    prepared.program.worker = again


def recipe_file(folder, model, inputs):
    configuration = (LeverChoice(lever="fold_batchnorm"), LeverChoice(lever="channels_last"))
    outcomes = [LeverOutcome(name=choice.lever, outcome="kept", ratio=0.8) for choice in configuration]
    recipe = Recipe(
        levers=proved_levers(configuration, outcomes, {}),
        target="model.py:workload",
        kind="inference",
        commit=None,
        signature=signature_of(model, [inputs]),
        proof=None,
        tolerance=0.03,
        environment=read_environment(),
        created="2026-01-01T00:00:00+00:00",
    )
    return recipe.write(folder / "model.recipe.toml")


def test_a_recipe_is_applied_and_proved(prepare, tmp_path):
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval()
    nn.init.uniform_(model[1].running_mean)
    x = torch.randn(2, 3, 8, 8)
    prepared = prepare(Inference(model, x), recipe=recipe_file(tmp_path, model, x))
    assert prepared.program.row_edges == (1, 2, 4)  # few shapes for what is made per shape
    assert prepared.numerics.refused is None
    assert not any(isinstance(part, nn.BatchNorm2d) for part in prepared.program.session.model.modules())
    three = torch.randn(3, 3, 8, 8)
    [[found]] = run(prepared, [Rows([three.numpy()], 3)])
    with torch.no_grad():
        torch.testing.assert_close(torch.from_numpy(found), model(three), rtol=1e-4, atol=1e-5)


def test_a_recipe_that_computes_other_numbers_is_not_served(prepare, tmp_path, monkeypatch):
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).eval()
    x = torch.randn(2, 3, 8, 8)
    file = recipe_file(tmp_path, model, x)
    other = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).eval()
    monkeypatch.setattr(Recipe, "workload", lambda _self, work: Inference(other, work.inputs))
    with pytest.raises(InputError, match="does not compute what the model computes"):
        prepare(Inference(model, x), recipe=file)


def test_numbers_of_rows_are_few():
    assert row_edges(1) == (1,)
    assert row_edges(32) == (1, 2, 4, 8, 16, 32)


def test_a_recipe_names_its_target_and_only_one_is_taken(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        source_of(str(tmp_path / "none.toml"))
    assert source_of("model.py:workload").name() == "workload"


def test_settings_come_from_the_project(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.pyrometer.serve]\nlatency = '20ms'\nmost-waiting = 8\n")
    settings = load_serve_settings(tmp_path, batch=2)
    assert (settings.latency_s, settings.most_waiting, settings.batch) == (0.02, 8, 2)
    assert settings.policy(2).most_rows == 2
    (tmp_path / "pyproject.toml").write_text("[tool.pyrometer.serve]\nlatancy = '20ms'\n")
    with pytest.raises(InputError, match="latancy: no such setting"):
        load_serve_settings(tmp_path)
    with pytest.raises(InputError, match="stands in paths"):
        ServeSettings(name="a/b")


def test_a_short_token_keeps_nobody_out():
    assert token_from({}, TOKEN) is None
    assert token_from({"PYROMETER_SERVE_TOKEN": "x" * 16}, TOKEN) == "x" * 16
    with pytest.raises(InputError, match="16 or more"):
        token_from({"PYROMETER_SERVE_TOKEN": "short"}, TOKEN)
