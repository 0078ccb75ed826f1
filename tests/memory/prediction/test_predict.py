"""What is predicted is what a real step then takes, whatever was changed."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import pyrometer as pm
from pyrometer.errors import InputError, UserProgramError
from pyrometer.memory.ledger.reading import ledger_of
from pyrometer.memory.prediction.errors import NotPredictableError
from pyrometer.memory.prediction.predict import predict_memory
from pyrometer.memory.recording.steps import record_steps

MOMENTUM = {"lr": 0.1, "momentum": 0.9}


def assert_exact(told, work):
    log = record_steps(work)
    assert told.tensor_peak_bytes == log.peak_bytes
    if told.peak_bytes == told.tensor_peak_bytes:
        assert told.ledger_bytes == ledger_of(log.live_at(log.peak_event))
    assert sum(told.ledger_bytes.values()) == told.peak_bytes


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("SGD", lambda p: torch.optim.SGD(p, lr=0.1)),
        ("SGD momentum", lambda p: torch.optim.SGD(p, **MOMENTUM)),
        ("AdamW", torch.optim.AdamW),
        ("AdamW foreach", lambda p: torch.optim.AdamW(p, foreach=True)),
        ("AdamW fused", lambda p: torch.optim.AdamW(p, fused=True)),
    ],
)
def test_another_optimizer_is_predicted_to_the_byte(mlp, name, make):
    assert_exact(predict_memory(mlp(), optimizer=name), mlp(optimizer=make))


@pytest.mark.parametrize("name", ["Adagrad", "NAdam", "RMSprop", "Adafactor", "Adadelta"])
def test_optimizers_with_state_of_their_own_are_predicted_as_they_are(mlp, name):
    work = mlp(optimizer=lambda p: getattr(torch.optim, name)(p, lr=0.01))
    assert_exact(predict_memory(work), work)


def test_a_warm_optimizer_keeps_the_state_that_it_has(mlp):
    work = mlp()
    x, y = work.batches[0]
    functional.mse_loss(work.parts.model(x), y).backward()
    work.parts.optimizer.step()
    assert_exact(predict_memory(work), work)


def test_another_batch_and_length_are_predicted_to_the_byte(tokens):
    assert_exact(predict_memory(tokens(), batch=9, sequence=40), tokens(batch=9, length=40))


@pytest.mark.slow
def test_checkpointing_is_predicted_to_the_byte(tokens):
    plain, work = predict_memory(tokens()), tokens()
    memory = predict_memory(work, checkpoint="every")
    assert memory.peak_bytes < plain.peak_bytes
    blocks = work.parts.model.blocks
    for block in blocks:
        run = block.forward
        block.forward = lambda x, run=run: torch.utils.checkpoint.checkpoint(run, x, use_reentrant=False)
    assert record_steps(work).peak_bytes == memory.peak_bytes
    assert predict_memory(tokens(), checkpoint=["blocks.0"]).peak_bytes >= memory.peak_bytes


@pytest.mark.parametrize("changes", [{"amp": torch.bfloat16}, {"accumulate": 3}])
def test_autocast_and_accumulation_are_predicted_to_the_byte(tokens, changes):
    assert_exact(predict_memory(tokens(), **changes), tokens(**changes))


def test_another_dtype_is_predicted_to_the_byte(mlp):
    memory = predict_memory(mlp(), dtype="bfloat16")
    assert_exact(memory, mlp(dtype=torch.bfloat16))
    assert memory.settings == {"dtype": "bfloat16"}


def test_autocast_as_written_can_be_left_out(mlp):
    assert predict_memory(mlp(amp="bfloat16"), amp=False).peak_bytes == predict_memory(mlp()).peak_bytes


def test_inference_is_predicted_with_and_without_gradients():
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))
    work = pm.Inference(model, torch.randn(32, 64))
    memory = predict_memory(work, batch=100)
    assert_exact(memory, pm.Inference(model, torch.randn(100, 64)))
    assert memory.ledger_bytes["activations"] == 0
    assert predict_memory(work, grad=True).ledger_bytes["activations"] > 0


def test_a_training_without_gradients_needs_no_more_than_its_inference(mlp):
    memory = predict_memory(mlp(), grad=False)
    assert memory.ledger_bytes["gradients"] == memory.ledger_bytes["optimizer"] == 0
    assert memory.peak_bytes < predict_memory(mlp()).peak_bytes


def test_fused_inference_of_an_encoder_is_predicted():
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2)
    work = pm.Inference(model, torch.randn(4, 10, 32))
    assert_exact(predict_memory(work), work)


def test_batches_that_are_made_anew_are_let_go_and_kept_ones_are_not():
    model = nn.Linear(64, 64)
    x, y = torch.randn(64, 64), torch.randn(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=16)
    for batches in (loader, [(x, y)], [(x, y), (y, x)], [(x.clone(), y.clone()) for _ in range(3)]):
        work = pm.Training(model, functional.mse_loss, optimizer, batches)
        assert_exact(predict_memory(work), work)


@pytest.mark.parametrize("amp", [None, "float16"])
def test_a_gradient_scaler_and_a_scheduler_are_followed(mlp, amp):
    work = mlp(amp=amp, scaler=torch.amp.GradScaler("cpu") if amp else None)
    work.parts = work.parts._replace(scheduler=torch.optim.lr_scheduler.StepLR(work.parts.optimizer, 1))
    told, real = predict_memory(work).tensor_peak_bytes, record_steps(work).peak_bytes
    assert abs(told - real) <= 16  # what the scaler reads of its own


@pytest.mark.slow
def test_nothing_of_the_users_is_touched(tokens):
    work, seen = tokens(), []
    model, optimizer = work.parts.model, work.parts.optimizer
    model.eval()
    model.head.bias.grad = torch.ones_like(model.head.bias)
    grad = model.head.bias.grad
    model.register_forward_hook(lambda _module, _inputs, output: seen.append(output))
    work.parts = work.parts._replace(
        loss=lambda output, target: seen.append(target) or language(output, target)
    )
    before = {name: (value, value.clone()) for name, value in model.state_dict(keep_vars=True).items()}
    rng = torch.get_rng_state()
    predict_memory(work, optimizer="SGD", batch=2, dtype="bfloat16", checkpoint="every")
    assert seen == []
    assert not model.training
    assert model.head.bias.grad is grad
    assert not optimizer.state
    assert torch.equal(torch.get_rng_state(), rng)
    assert "forward" not in vars(model.blocks[0])
    for name, value in model.state_dict(keep_vars=True).items():
        assert value is before[name][0]
        assert torch.equal(value, before[name][1])


def language(output, target):
    return functional.cross_entropy(output.flatten(0, 1), target.flatten())


def test_a_loss_that_reaches_the_model_by_another_name_is_followed():
    model = nn.Linear(16, 16)
    x = torch.randn(8, 16)
    own = model
    work = pm.Training(
        model, lambda model, batch: (own(batch) ** 2).mean(), torch.optim.SGD(model.parameters()), [x]
    )
    assert_exact(predict_memory(work), work)
    assert model.weight.grad is None


@pytest.mark.slow
def test_compiled_models_are_predicted_as_they_are_written():
    for model in (torch.compile(nn.Linear(32, 32)), nn.Sequential(torch.compile(nn.Linear(32, 32)))):
        work = pm.Training(
            model, functional.mse_loss, torch.optim.SGD(model.parameters()), [(torch.randn(8, 32),) * 2]
        )
        plain = nn.Linear(32, 32)
        bare = pm.Training(
            plain, functional.mse_loss, torch.optim.SGD(plain.parameters()), [(torch.randn(8, 32),) * 2]
        )
        assert predict_memory(work).peak_bytes == predict_memory(bare).peak_bytes


def test_tied_weights_stay_tied():
    words, head = nn.Embedding(50, 16), nn.Linear(16, 50, bias=False)
    head.weight = words.weight
    model = nn.Sequential(words, head)
    ids = torch.randint(0, 50, (4, 6))
    work = pm.Training(model, language, torch.optim.AdamW(model.parameters()), [(ids, ids)])
    memory = predict_memory(work)
    assert_exact(memory, work)
    assert memory.ledger_bytes["parameters"] == 50 * 16 * 4


class Deciding(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x):
        hidden = self.layer(x)
        if hidden.mean().item() > 0:
            hidden = hidden * 2
        return hidden


class Masking(Deciding):
    def forward(self, x):
        hidden = self.layer(x)
        return hidden[hidden > 0]


@pytest.mark.parametrize(
    ("model", "line"), [(Deciding(), "if hidden.mean"), (Masking(), "return hidden[hidden > 0]")]
)
def test_a_program_that_needs_values_is_told_with_its_line_or_run_for_real(model, line):
    work = pm.Training(
        model,
        lambda output, _target: output.sum(),
        torch.optim.SGD(model.parameters()),
        [(torch.randn(8, 16),) * 2],
    )
    with pytest.raises(NotPredictableError, match=r"test_predict\.py:") as caught:
        predict_memory(work)
    assert line in str(caught.value)
    memory = predict_memory(work, fallback=True)
    assert memory.from_real_steps
    assert line in memory.notes[0]
    assert memory.peak_bytes == record_steps(work).peak_bytes
    with pytest.raises(NotPredictableError):  # other sizes cannot be run
        predict_memory(work, fallback=True, batch=3)


def test_what_hides_its_tensors_is_refused():
    sparse = nn.Embedding(10, 4, sparse=True)
    scripted = torch.jit.script(nn.Linear(4, 4))
    for model, inputs, why in (
        (sparse, torch.zeros(2, dtype=torch.int64), "sparse gradients"),
        (scripted, torch.zeros(2, 4), "TorchScript"),
        (nn.LazyLinear(4), torch.zeros(2, 4), "lazy"),
    ):
        with pytest.raises(NotPredictableError, match=why):
            predict_memory(pm.Inference(model, inputs))


def test_a_program_that_fails_by_itself_is_not_taken_for_one_that_needs_values():
    work = pm.Inference(nn.Linear(4, 4), torch.randn(2, 5))
    with pytest.raises(UserProgramError, match="the step raised"):
        predict_memory(work)


def test_settings_that_are_illegal_are_told(mlp):
    for changes, text in (
        ({"batch": 0}, "batch: got 0"),
        ({"dtype": "int8"}, "dtype: got 'int8'"),
        ({"optimizer": "AdmW"}, "did you mean AdamW"),
        ({"optimizer": "AdamW quick"}, "legal words"),
        ({"optimizer": "SGD amsgrad"}, "cannot be made"),
        ({"optimizer": lambda p: p}, "must return"),
        ({"checkpoint": "each"}, "checkpoint: got"),
        ({"checkpoint": ["nowhere"]}, "no such module"),
        ({"amp": "int8"}, "amp: got"),
        ({"device": "xpu"}, "device: got"),
        ({"sequence": 4}, "sequence: its dimension cannot be told"),
    ):
        with pytest.raises(InputError, match=text):
            predict_memory(mlp(), **changes)
    with pytest.raises(InputError, match=r"give pm\.Training"):
        predict_memory(pm.Call(sorted, [1]))


def test_cuda_rounds_to_blocks_and_takes_segments_without_a_gpu(mlp):
    cpu, cuda = predict_memory(mlp(), optimizer="AdamW foreach"), predict_memory(mlp(), device="cuda")
    assert cpu.peak_bytes < cuda.peak_bytes < cpu.peak_bytes + 512 * 100
    assert cuda.peak_bytes % 512 == 0
    assert cuda.reserved_bytes % 2**21 == 0
    assert cuda.reserved_bytes >= cuda.peak_bytes
    assert any("context" in note for note in cuda.notes)
    assert cpu.reserved_bytes is None


def test_a_budget_is_answered(mlp):
    peak = predict_memory(mlp()).peak_bytes
    assert predict_memory(mlp(), budget=peak).fits
    assert not predict_memory(mlp(), budget=peak - 1).fits
    assert predict_memory(mlp(), budget="2GiB").fits
    assert predict_memory(mlp()).fits is None


def test_what_holds_the_peak_is_known_by_line_and_module(mlp):
    memory = predict_memory(mlp(batch=4096))
    assert memory.at_peak[0].bytes >= memory.at_peak[-1].bytes
    assert any(held.module for held in memory.at_peak)
    assert max(memory.phase_peaks_bytes.values()) == memory.peak_bytes


def test_an_lstm_keeps_its_workspace(recurrent):
    work = recurrent(bidirectional=True, layers=2)
    assert_exact(predict_memory(work), work)
