"""Mixed precision beside float32: every fault that it may have is found, and a sound training has none."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import pyrometer as pm
from pyrometer.errors import InputError
from pyrometer.record import from_json
from pyrometer.tuning.precision_audit import AmpAudit, audit_mixed_precision, in_mixed_precision


def training(loss=None, model=None, batches=None, **settings):
    torch.default_generator.manual_seed(0)
    model = model or nn.Sequential(
        nn.Linear(8, 32), nn.LayerNorm(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 4)
    )
    batches = batches or [(torch.randn(16, 8), torch.randint(4, (16,))) for _ in range(3)]
    return pm.Training(
        model, loss or nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), 0.1), batches, **settings
    )


def test_a_sound_training_is_told_so_and_left_as_it_was():
    work = training()
    before = [parameter.detach().clone() for parameter in work.parts.model.parameters()]
    state = torch.get_rng_state()
    audit = audit_mixed_precision(work, steps=4, budget_s=None)
    assert audit.problems == ["results rounded: native_layer_norm in bfloat16"]
    assert len(audit.losses) == len(audit.float32_losses) == 4
    assert audit.losses != audit.float32_losses
    assert 0 < audit.loss_difference < 0.01
    assert (audit.num_overflows, audit.scale, audit.label_casts) == (0, None, [])
    assert {(one.kind, one.dtype) for one in audit.results} == {
        ("loss", "float32"),
        ("softmax", "float32"),
        ("normalisation", "bfloat16"),
    }
    assert {one.calls for one in audit.results} == {1}
    assert all(torch.equal(a, b) for a, b in zip(before, work.parts.model.parameters(), strict=True))
    assert torch.equal(state, torch.get_rng_state())
    assert from_json(AmpAudit, audit.to_json()) == audit
    assert str(audit).startswith("bfloat16 on cpu: loss within 0.")


def test_the_float32_side_is_the_training_without_autocast_and_scaler():
    scaled = training(amp="float16", scaler=torch.amp.GradScaler("cpu"))
    audit = audit_mixed_precision(scaled, "float16", steps=3, budget_s=None)
    with training().open() as session:
        assert audit.float32_losses == [float(session.step()) for _ in range(3)]


def test_overflows_are_counted_and_late_ones_are_a_problem():
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40)
    audit = audit_mixed_precision(training(scaler=scaler), "float16", steps=4, budget_s=None)
    assert audit.num_overflows == 4
    assert audit.overflow_frequency == 1
    assert audit.scale == 2.0**36
    assert "gradients still overflow after half of the audited steps" in audit.problems
    assert scaler.get_scale() == 2.0**40
    calm = audit_mixed_precision(training(), "float16", steps=4, budget_s=None)
    assert calm.num_overflows == 0
    assert not any("overflow" in problem for problem in calm.problems)


@pytest.mark.parametrize(
    ("target", "cast"),
    [
        (lambda y: y.float(), [("int64", "float32")]),
        (lambda y: y.to(torch.bfloat16), [("int64", "bfloat16")]),
        (lambda y: y, []),
    ],
)
def test_labels_that_are_cast_are_told(target, cast):
    def loss(output, y):
        given = target(y)
        if given.is_floating_point():
            return functional.mse_loss(output.mean(-1), given.float())
        return functional.cross_entropy(output, given)

    audit = audit_mixed_precision(training(loss), steps=2, budget_s=None)
    assert [(one.from_dtype, one.to_dtype) for one in audit.label_casts] == cast
    assert any("labels cast" in problem for problem in audit.problems) == bool(cast)


def test_a_loss_that_is_taken_in_low_precision_is_a_problem():
    def loss(output, y):
        with torch.autocast("cpu", enabled=False):
            return functional.cross_entropy(output, y)

    audit = audit_mixed_precision(training(loss, nn.Linear(8, 4)), steps=2, budget_s=None)
    assert audit.problems == ["results rounded: _log_softmax in bfloat16, nll_loss_forward in bfloat16"]


def test_a_loss_that_goes_elsewhere_is_a_problem():
    class Cancelling(nn.Linear):
        def forward(self, x):
            return (super().forward(x) + 300) - 300  # in bfloat16 nothing is left

    model = Cancelling(8, 4)
    audit = audit_mixed_precision(
        training(lambda output, y: output.float().square().mean(), model), steps=2, budget_s=None
    )
    assert audit.loss_difference > 0.05
    assert any("from float32" in problem for problem in audit.problems)


def test_losses_that_are_not_finite_are_a_problem():
    def loss(output, y):
        return functional.cross_entropy(output * (1e30 if output.dtype == torch.float32 else float("inf")), y)

    audit = audit_mixed_precision(training(loss), steps=1, budget_s=None)
    assert audit.loss_difference is None
    assert "losses are not finite" in audit.problems


def test_speed_and_peaks_are_measured():
    audit = audit_mixed_precision(training(), steps=2, budget_s=0.2)
    assert audit.speed is not None
    assert audit.float32_peak_bytes > 0
    assert audit.peak_bytes > 0
    assert "peak" in str(audit)


def test_the_loop_audits_its_own():
    loop = pm.TrainingLoop(training(amp="float16"))
    loop.run(2)
    audit = loop.audit(steps=2, budget_s=None)
    assert audit.dtype == "float16"
    assert audit.scale is not None
    with pytest.raises(InputError, match="audit: the training is in float32"):
        pm.TrainingLoop(training()).audit()


def test_float16_gets_a_scaler_and_bfloat16_needs_none():
    work = training()
    assert in_mixed_precision(work).parts.scaler is None
    assert in_mixed_precision(work, "float16").parts.scaler is not None
    assert work.parts.scaler is None
    assert in_mixed_precision(work).config.autocast == "bfloat16"


def test_bad_arguments_are_refused():
    with pytest.raises(InputError, match="dtype: got 'float8'; legal are bfloat16, float16"):
        audit_mixed_precision(training(), "float8")
    with pytest.raises(InputError, match="work: got Inference"):
        audit_mixed_precision(pm.Inference(nn.Linear(2, 2), torch.zeros(1, 2)))
    with pytest.raises(InputError, match="steps: got 0"):
        audit_mixed_precision(training(), steps=0)
