"""Rules about lines: in place, views, joined pieces, losses, variables. Each is applied, and keeps its word."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from pyrometer.memory.advice.rules.copies import copies, two_dtypes
from pyrometer.memory.advice.rules.in_place import in_place
from pyrometer.memory.advice.rules.lingering import lingering
from pyrometer.memory.advice.rules.losses import logits_in_chunks, scalar_with_storage
from pyrometer.memory.advice.rules.preallocation import preallocation
from pyrometer.workload.call import Call
from pyrometer.workload.changes.results import results_of
from pyrometer.workload.inference import Inference
from pyrometer.workload.training import Training


class Written(nn.Module):
    """A model whose forward is given as a function."""

    def __init__(self, run, **layers):
        super().__init__()
        for name, layer in layers.items():
            setattr(self, name, layer)
        self.run = run

    def forward(self, x):
        return self.run(self, x)


def inference(run, *shape, **layers):
    torch.manual_seed(0)
    return Inference(Written(run, **layers), torch.randn(*shape))


def outcome(work):
    if isinstance(work, Call):
        return work.function()
    with work.open() as session:
        return session.step(session.prepare())


def gradients(work):
    return torch.cat([value.flatten() for _, value in sorted(results_of(work)[0].items())])


def perceptron(inplace):
    torch.manual_seed(0)
    layers = (nn.Linear(16, 256), nn.ReLU(inplace), nn.Linear(256, 16), nn.ReLU(inplace))
    return Inference(nn.Sequential(*layers), torch.randn(64, 16))


def test_modules_write_in_place(keeps_its_word):
    advice = keeps_its_word(in_place, perceptron(False), perceptron(True), "in-place", 0.02)
    assert "nn.ReLU(inplace=True)  # 1" in advice.sketch
    assert torch.equal(outcome(perceptron(False)), outcome(perceptron(True)))


def test_functions_write_in_place(keeps_its_word):
    before = inference(lambda m, x: torch.sigmoid(m.inner(x)), 64, 32, inner=nn.Linear(32, 512))
    after = inference(lambda m, x: torch.sigmoid_(m.inner(x)), 64, 32, inner=nn.Linear(32, 512))
    after.model.load_state_dict(before.model.state_dict())
    advice = keeps_its_word(in_place, before, after, "in-place", 0.02)
    assert "x.sigmoid_()  # " in advice.sketch
    assert f"{advice.where.file}:{advice.where.line}" in advice.why
    assert advice.where.file.endswith("test_lines.py")
    assert torch.equal(outcome(before), outcome(after))


def read_again(module, x):
    y = module.inner(x)
    return y + functional.relu(y)


def test_what_is_read_again_is_not_overwritten(advice_of):
    assert all(
        "relu" not in one.sketch
        for one in advice_of(in_place, inference(read_again, 64, 32, inner=nn.Linear(32, 64)))
    )


def test_inputs_and_parameters_are_not_overwritten(advice_of):
    assert advice_of(in_place, inference(lambda m, x: functional.relu(x), 64, 32)) == []


def test_what_autograd_saved_is_not_overwritten(advice_of):
    model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.ReLU(), nn.Linear(64, 4))
    batch = torch.randn(256, 16), torch.randint(4, (256,))
    work = Training(model, nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=0.1), [batch])
    assert advice_of(in_place, work) == []


@torch.no_grad()
def gathered(x):
    pieces = []
    for part in x.chunk(8):
        pieces.append(part * 2)  # noqa: PERF401 - as people write it
    return torch.cat(pieces)


@torch.no_grad()
def prepared(x):
    out, start = torch.empty_like(x), 0
    for part in x.chunk(8):
        out[start : start + len(part)] = part * 2
        start += len(part)
    return out


@torch.no_grad()
def grown(x):
    cache = x[:1] * 1
    for row in x[1:]:
        cache = torch.cat([cache, row[None]])
    return cache.sum()


@torch.no_grad()
def grown_in_place(x):
    cache = torch.empty_like(x)
    for at, row in enumerate(x):
        cache[at] = row
    return cache.sum()


@pytest.mark.parametrize(("before", "after"), [(gathered, prepared), (grown, grown_in_place)])
def test_results_are_written_where_they_belong(before, after, keeps_its_word):
    x = torch.arange(64.0 * 256).view(64, 256)
    keeps_its_word(preallocation, Call(before, x), Call(after, x), "preallocate", 0.1)
    assert torch.equal(before(x), after(x))


def test_two_results_side_by_side_are_joined(advice_of):
    work = inference(
        lambda m, x: torch.cat([m.one(x), m.other(x)], 1),
        64,
        32,
        one=nn.Linear(32, 32),
        other=nn.Linear(32, 32),
    )
    assert advice_of(preallocation, work) == []


def copying(module, x):
    y = module.inner(x)
    z = y.clone()
    return y.sum() + z.sum()


def sharing(module, x):
    y = module.inner(x)
    z = y
    return y.sum() + z.sum()


def repeating(module, x):
    bias = module.bias.repeat(len(x), 1)
    return module.inner(x) + bias


def expanding(module, x):
    bias = module.bias.expand(len(x), -1)
    return module.inner(x) + bias


def with_bias():
    return {"inner": nn.Linear(32, 64), "bias": nn.Parameter(torch.zeros(1, 64))}


@pytest.mark.parametrize(
    ("before", "after", "layers"),
    [(copying, sharing, lambda: {"inner": nn.Linear(32, 64)}), (repeating, expanding, with_bias)],
)
def test_needless_copies_are_left_out(before, after, layers, keeps_its_word):
    one, other = inference(before, 256, 32, **layers()), inference(after, 256, 32, **layers())
    other.model.load_state_dict(one.model.state_dict())
    advice = keeps_its_word(copies, one, other, "views-instead-of-copies", 0.02)
    assert (advice.where.file, advice.where.line) == (
        __file__,
        before.__code__.co_firstlineno + (2 if before is copying else 1),
    )
    assert torch.equal(outcome(one), outcome(other))


def written_into(module, x):
    y = module.inner(x)
    z = y.clone()
    z[0] = 0
    return y.sum() + z.sum()


def laid_out(module, x):
    y = module.inner(x).t().contiguous()
    return y.view(-1).sum() + y.sum()


@pytest.mark.parametrize("run", [written_into, laid_out])
def test_copies_that_are_needed_stay(run, advice_of):
    assert advice_of(copies, inference(run, 256, 32, inner=nn.Linear(32, 64))) == []


def squared(h):
    return h.float().square().sum()


def twice(model, batch):
    h = model[0](batch)
    return squared(h) + model[1](h).float().square().sum()


def once(model, batch):
    h = model[0](batch)
    return checkpoint(squared, h, use_reentrant=False) + model[1](h).float().square().sum()


def low_precision(loss):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 256), nn.Sequential(nn.Linear(256, 512), nn.Tanh())).to(
        torch.bfloat16
    )
    batch = torch.randn(256, 32, dtype=torch.bfloat16)
    return Training(model, loss, torch.optim.SGD(model.parameters(), lr=0.1), [batch])


def test_one_dtype_is_enough(keeps_its_word):
    advice = keeps_its_word(two_dtypes, low_precision(twice), low_precision(once), "one-dtype", 0.3)
    assert "h.float()" in advice.why
    assert torch.allclose(gradients(low_precision(twice)), gradients(low_precision(once)), rtol=1e-2)


def test_autocasts_own_casts_are_no_matter(deep, advice_of):
    assert advice_of(two_dtypes, deep(amp="bfloat16")) == []


def regression(loss):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 1024), nn.Tanh(), nn.Linear(1024, 512))
    batch = torch.randn(256, 8), torch.randn(256, 512)
    return Training(model, loss, torch.optim.SGD(model.parameters(), lr=0.1), [batch])


def cloned(output, target):
    return functional.mse_loss(output, target).clone()


def test_a_mean_lets_go_of_its_storage(keeps_its_word):
    keeps_its_word(
        scalar_with_storage, regression(functional.mse_loss), regression(cloned), "clone-scalar-loss", 0.05
    )
    assert torch.equal(gradients(regression(functional.mse_loss)), gradients(regression(cloned)))


def test_a_loss_with_a_storage_of_its_own_is_no_matter(advice_of):
    assert advice_of(scalar_with_storage, regression(functional.l1_loss)) == []


def classifier(chunked=None):
    torch.manual_seed(0)
    trunk, head = nn.Sequential(nn.Embedding(50, 16), nn.Linear(16, 16)), nn.Linear(16, 4000)
    model = nn.ModuleList([trunk, head])
    batch = torch.randint(50, (8, 32)), torch.randint(4000, (8, 32))

    def loss(model, batch):
        if chunked is None:
            logits = model[1](model[0](batch[0]))
            return functional.cross_entropy(logits.flatten(0, -2), batch[1].flatten())
        names = {"head": model[1], "hidden": model[0](batch[0]), "target": batch[1]}
        exec(chunked, names)
        return names["loss"]

    return Training(model, loss, torch.optim.SGD(model.parameters(), lr=0.1), [batch])


def test_scores_of_many_classes_are_computed_in_chunks(keeps_its_word):
    advice = keeps_its_word(
        logits_in_chunks,
        classifier(),
        lambda advice: classifier(advice.sketch),
        "chunked-cross-entropy",
        0.1,
    )
    whole, parts = gradients(classifier()), gradients(classifier(advice.sketch))
    assert torch.allclose(whole, parts, rtol=1e-3, atol=1e-8)


def test_few_classes_are_no_matter(deep, advice_of):
    assert advice_of(logits_in_chunks, deep()) == []


def holding(module, x):
    features = module.encoder(x)
    pooled = features.mean(1)
    wide = module.up(pooled)
    return module.down(wide.relu() + wide)


def letting_go(module, x):
    features = module.encoder(x)
    pooled = features.mean(1)
    del features
    wide = module.up(pooled)
    del pooled
    return module.down(wide.relu() + wide)


def layers():
    return {"encoder": nn.Linear(8, 32), "up": nn.Linear(32, 256), "down": nn.Linear(256, 4)}


def test_variables_are_let_go(keeps_its_word):
    before, after = inference(holding, 64, 6, 8, **layers()), inference(letting_go, 64, 6, 8, **layers())
    after.model.load_state_dict(before.model.state_dict())
    advice = keeps_its_word(lingering, before, after, "let-go-earlier", 0.05)
    assert advice.sketch == "del features  # after its last use\ndel pooled  # after its last use"
    assert "`features` of holding()" in advice.why
    assert (advice.where.file, advice.where.line) == (__file__, holding.__code__.co_firstlineno + 4)
    assert torch.equal(outcome(before), outcome(after))


def test_what_torchs_own_containers_hold_is_no_variable_of_the_users(advice_of):
    block = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64))
    assert advice_of(lingering, Inference(nn.Sequential(block, block), torch.randn(256, 64))) == []
