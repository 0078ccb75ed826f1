"""Each lever: where it is applied, that its probe sees that, that the results are those of its class, and where it refuses."""

from __future__ import annotations

import contextlib
import copy
import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.bench.matrix.numerics import numeric_error
from pyrometer.errors import UserProgramError
from pyrometer.tuning.levers.applying import apply_levers, not_applied, subject_of
from pyrometer.tuning.levers.attention import written_out
from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.levers.families.executor.compile_regional import repeated_blocks
from pyrometer.tuning.levers.lever import missing_packages, uninstalled
from pyrometer.tuning.levers.registry import find_lever, levers
from pyrometer.tuning.levers.runtimes.exporting import library
from pyrometer.tuning.trials.gate import Limits, coarsest
from pyrometer.workload.program.describe import multiplies_bfloat16


def convolutions():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(), nn.Conv2d(8, 4, 3))
    nn.init.uniform_(model[1].running_mean)
    nn.init.uniform_(model[1].running_var, 0.5, 2.0)
    return pm.Inference(model, torch.randn(2, 3, 12, 12))


def linear_norm():
    model = nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16), nn.Linear(16, 4))
    nn.init.uniform_(model[1].running_var, 0.5, 2.0)
    return pm.Inference(model, torch.randn(8, 16))


def shared_norm():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.norm = nn.Linear(8, 8), nn.BatchNorm1d(8)

        def forward(self, x):
            return self.norm(self.norm(self.layer(x)))

    return pm.Inference(Twice(), torch.randn(4, 8))


def mlp():
    return pm.Inference(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)), torch.randn(8, 16))


def decayed():
    work = mlp()
    with torch.no_grad():
        work.model[0].weight[0] = 1e-40
    return work


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.layer = nn.LayerNorm(16), nn.Linear(16, 16)

    def forward(self, x):
        return x + torch.relu(self.layer(self.norm(x)))


class Blocks(nn.Module):
    """Repeated blocks; takes a keyword, and returns a dict."""

    def __init__(self):
        super().__init__()
        self.layers, self.head = nn.ModuleList(Block() for _ in range(3)), nn.Linear(16, 4)

    def forward(self, x, *, scale):
        for layer in self.layers:
            x = layer(x)
        return {"hidden": x, "logits": self.head(x) * scale, "none": None}


def blocks():
    return pm.Inference(Blocks(), {"x": torch.randn(8, 16), "scale": 2.0})


def wide():
    torch.manual_seed(0)
    return pm.Inference(
        nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64)).eval(), torch.randn(16, 64)
    )


def with_spare_neurons():
    work = wide()
    with torch.no_grad():
        work.model[0].weight[::4] *= 1e-3
        work.model[0].bias[::4] = 0.0
    return work


def training(**options):
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.AdamW(model.parameters(), **options)
    batches = [(torch.randn(8, 16), torch.randint(0, 4, (8,))) for _ in range(3)]
    return pm.Training(model, nn.functional.cross_entropy, optimizer, batches)


def without_choice():
    model = nn.Linear(16, 4)
    batches = [(torch.randn(8, 16), torch.randint(0, 4, (8,)))]
    return pm.Training(model, nn.functional.cross_entropy, torch.optim.Rprop(model.parameters()), batches)


def summed_table() -> pm.Inference:
    return pm.Inference(nn.EmbeddingBag(32, 4), torch.tensor([[1, 2], [3, 4]]))


def half():
    return pm.Inference(nn.Linear(4, 4).bfloat16(), torch.randn(2, 4).bfloat16())


def compiled():
    return pm.Inference(torch.compile(nn.Linear(4, 4)), torch.randn(2, 4))


def blocks_compiled():
    work = blocks()
    work.model.layers[0].compile()
    return work


def with_rprop_and(**options):
    work = without_choice()
    work.parts = work.parts._replace(**{name: make(work.parts.optimizer) for name, make in options.items()})
    return work


def scheduled():
    return with_rprop_and(scheduler=lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 2))


def loading(**options):
    work = training()
    dataset = torch.utils.data.TensorDataset(torch.randn(24, 16), torch.randint(0, 4, (24,)))
    work.batches = torch.utils.data.DataLoader(dataset, batch_size=8, **options)
    return work


def with_worker():
    return loading(num_workers=1)


def normalising():
    work = training()
    model = nn.Sequential(nn.Linear(16, 4), nn.BatchNorm1d(4))
    return pm.Training(model, work.parts.loss, torch.optim.SGD(model.parameters()), work.batches)


class WrittenOut(nn.Module):
    """As most code writes it that does not use the fused operator."""

    def __init__(self, causal):
        super().__init__()
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.dropout, self.causal = nn.Dropout(0.1), causal
        self.register_buffer("mask", torch.tril(torch.ones(16, 16)).view(1, 1, 16, 16))

    def forward(self, x, hidden=None):
        batch, length, width = x.size()
        q, k, v = self.qkv(x).split(width, dim=2)
        k = k.view(batch, length, 4, 8).transpose(1, 2)
        q = q.view(batch, length, 4, 8).transpose(1, 2)
        v = v.view(batch, length, 4, 8).transpose(1, 2)
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        if self.causal:
            scores = scores.masked_fill(self.mask[:, :, :length, :length] == 0, float("-inf"))
        if hidden is not None:
            scores = scores + hidden
        weights = self.dropout(nn.functional.softmax(scores, dim=-1))
        return self.out((weights @ v).transpose(1, 2).contiguous().view(batch, length, width))


def attention():
    return pm.Inference(nn.Sequential(WrittenOut(False), nn.LayerNorm(32)), torch.randn(2, 12, 32))


def causal_attention():
    return pm.Inference(WrittenOut(True), torch.randn(2, 12, 32))


def masked_attention():
    return pm.Inference(WrittenOut(False), (torch.randn(2, 12, 32), torch.randn(2, 1, 12, 12)))


def attention_that_shows_its_weights():
    class Showing(nn.Module):
        def forward(self, q):
            weights = torch.softmax(q @ q.transpose(-2, -1), dim=-1)
            return weights @ q, weights

    return pm.Inference(Showing(), torch.randn(2, 4, 12, 8))


def transformer():
    transformers = pytest.importorskip("transformers")
    size = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 64, "num_hidden_layers": 2}
    config = transformers.BertConfig(vocab_size=64, attn_implementation="eager", **size)
    return pm.Inference(transformers.BertModel(config), {"input_ids": torch.randint(0, 64, (2, 12))})


class Applied(NamedTuple):
    """A lever on a program that it fits."""

    lever: str
    program: Callable[[], pm.Workload]
    parameters: dict = {}
    marks: tuple = ()


def of_varying_length():
    lengths = itertools.cycle([5, 6, 7, 8])
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    return pm.Inference(model, lambda: torch.randn(2, next(lengths), 16))


def encoder():
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    return pm.Inference(
        nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval(), torch.randn(4, 8, 64)
    )


def summed_over_the_batch():
    class Summed(nn.Module):
        def forward(self, x):
            return x.sum()

    return pm.Inference(Summed(), torch.randn(8, 4))


AUTOCAST_AROUND_CALLS = Applied("autocast_bf16", mlp)
"""A context leaves no trace outside of calls; its probe asks whether this machine honours it."""

SLOW = (pytest.mark.slow,)
ANOTHER_OF_ITS_KIND = (pytest.mark.slow, pytest.mark.exhaustive)
"""What compiles for many seconds, and has a brother that is applied in every run."""
IN_ONE_PROCESS = (pytest.mark.exhaustive,)
"""Runtimes bring threads and allocators of their own, which several in one process do not always survive; as in a search,
each runs in a process of its own in `tests/tuning/trials/test_worker.py`."""

WITH_BFLOAT16 = pytest.mark.skipif(not multiplies_bfloat16(), reason="the CPU does not multiply bfloat16")

FITS = [
    Applied("drop_dropout", convolutions),
    Applied("fold_batchnorm", convolutions),
    Applied("fold_batchnorm", linear_norm),
    Applied("channels_last", convolutions),
    AUTOCAST_AROUND_CALLS,
    Applied("autocast_bf16", training),
    Applied("cast_bf16", mlp),
    Applied("threads", mlp, {"num": 1}),
    Applied("flush_denormals", decayed),
    Applied("fused_optimizer", training),
    Applied("foreach_optimizer", training),
    Applied("foreach_optimizer", without_choice),
    Applied("compile_optimizer", training, {}, SLOW),
    Applied("compile_optimizer", without_choice, {}, ANOTHER_OF_ITS_KIND),
    Applied("accumulate", training, {"num_parts": 3}),
    Applied("checkpointing", training, {"modules": {"0": "full", "1": "full"}, "written": {}}),
    Applied("num_workers", loading, {"num": 1}),
    Applied("prefetch_factor", with_worker, {"num": 4}),
    Applied("persistent_workers", with_worker),
    Applied("linear_activation", mlp),
    Applied("sdpa", attention),
    Applied("sdpa", causal_attention),
    Applied("sdpa", masked_attention),
    Applied("sdpa", transformer, {}, SLOW),
    Applied("compile", mlp, {"mode": "default"}, SLOW),
    Applied("compile", convolutions, {"mode": "default", "freezing": True}, ANOTHER_OF_ITS_KIND),
    Applied("compile", mlp, {"mode": "default", "freezing": True, "cpp_wrapper": True}, ANOTHER_OF_ITS_KIND),
    Applied(
        "compile", encoder, {"mode": "default", "freezing": True, "fastpath": False}, ANOTHER_OF_ITS_KIND
    ),
    Applied("micro_batches", blocks, {"samples": 3}),
    Applied("compile_regional", blocks, {}, SLOW),
    Applied("onnxruntime", blocks, {}, IN_ONE_PROCESS),
    Applied("onnxruntime", convolutions, {}, IN_ONE_PROCESS),
    Applied("openvino", blocks, {}, IN_ONE_PROCESS),
    Applied("openvino", convolutions, {}, IN_ONE_PROCESS),
    Applied("openvino_bf16", convolutions, {}, (*IN_ONE_PROCESS, WITH_BFLOAT16)),
    Applied("int8_dynamic", wide, {}, SLOW),
    Applied("int8_weight_only", wide, {}, ANOTHER_OF_ITS_KIND),
    Applied("prune_channels", with_spare_neurons, {"share": 0.25}),
]
REFUSED = [
    (
        "executorch",
        lambda: pm.Inference(nn.Linear(4, 4).double(), torch.randn(2, 4).double()),
        "torch.float64",
    ),
    ("drop_dropout", mlp, "no module for dropout"),
    ("fold_batchnorm", mlp, "no batch norm"),
    ("fold_batchnorm", shared_norm, "no batch norm reads"),
    ("channels_last", mlp, "no 2-d convolution"),
    ("autocast_fp16", mlp, "on a CPU bfloat16"),
    ("cast_bf16", half, "not in float32"),
    ("autocast_bf16", lambda: pm.Inference(nn.ReLU(), torch.randn(2, 4)), "no floating-point parameters"),
    ("flush_denormals", mlp, "neither parameters nor inputs"),
    ("fused_optimizer", lambda: training(fused=True), "fused already"),
    ("fused_optimizer", without_choice, "has no fused kernel"),
    ("compile", compiled, "comes compiled"),
    ("compile_regional", blocks_compiled, "comes compiled"),
    ("shape_buckets", mlp, "all inputs have the same shapes"),
    ("micro_batches", convolutions, "4 are the fewest to split"),
    ("compile_regional", mlp, "no block is repeated"),
    ("aot_inductor", compiled, "comes compiled"),
    ("onnxruntime", compiled, "comes compiled"),
    ("onnxruntime", half, "computes in torch.bfloat16"),
    ("onnxruntime", summed_table, "a loop over the bags"),
    ("openvino", half, "computes in torch.bfloat16"),
    ("openvino_bf16", half, "computes in torch.bfloat16"),
    ("cuda_graphs", mlp, "CUDA graphs need a CUDA device"),
    ("foreach_optimizer", lambda: training(foreach=True), "foreach already"),
    ("compile_optimizer", lambda: training(fused=True), "fused already"),
    ("compile_optimizer", scheduled, "make it a tensor"),
    ("accumulate", normalising, "batch norm sees the whole batch"),
    ("checkpointing", without_choice, "no modules to compute again"),
    ("num_workers", training, "from no DataLoader"),
    ("prefetch_factor", loading, "has no workers"),
    ("persistent_workers", lambda: loading(num_workers=1, persistent_workers=True), "live on already"),
    ("pin_memory", loading, "nothing is copied to a GPU"),
    ("prefetch_device", training, "no copy to overlap"),
    ("tf32", mlp, "TF32 is of NVIDIA's GPUs"),
    ("linear_activation", linear_norm, "no linear layer with an activation"),
    ("sdpa", mlp, "no module of the model writes attention out"),
    ("sdpa", attention_that_shows_its_weights, "no module of the model writes attention out"),
    ("inference_mode", mlp, "under torch.inference_mode already"),
    ("eval_mode", mlp, "in eval mode already"),
    ("int8_dynamic", mlp, "no linear layer in floating point has at least 64"),
    ("int8_weight_only", convolutions, "no linear layer in floating point has at least 64"),
    ("int8_static", lambda: pm.Inference(nn.ReLU(), torch.randn(2, 4)), "neither linear layers nor"),
    ("int8_static", lambda: pm.Inference(nn.Linear(4, 4).bfloat16(), torch.randn(2, 4)), "not in float32"),
    ("prune_channels", lambda: pm.Inference(nn.Linear(4, 4), torch.randn(2, 4)), "read by one other layer"),
    ("compile", lambda: pm.Inference(torch.compile(nn.Linear(4, 4)), torch.randn(2, 4)), "comes compiled"),
]


WRAPPERS = {"shape_buckets", "micro_batches"}
"""Their probes ask what they laid around the model."""


@pytest.mark.parametrize(
    "applied", [pytest.param(a, marks=a.marks, id=f"{a.lever}-{a.program.__name__}") for a in FITS]
)
def test_it_is_applied_seen_to_be_and_computes_the_same(applied, tmp_path):
    work, lever = applied.program(), find_lever(applied.lever)
    choice = LeverChoice(lever=applied.lever, parameters=applied.parameters)
    subject = subject_of(work, tmp_path)
    reference = outputs(subject.finished())
    assert lever.refuses(subject) is None
    apply_levers(subject, (choice,))
    if (
        applied.lever == "compile"
    ):  # as in a process of its own: a graph of the same layers would be taken as it is
        torch._dynamo.reset()
    with torch.inference_mode(False):
        changed, seen = outputs_and_probe(subject, choice)
    assert seen is None
    error = numeric_error(changed, reference, 0.0)
    assert error.mismatch is None
    assert error.max_rel <= Limits().largest_error(lever.fix_class)


def outputs(work):
    with work.open() as session:
        session.activate()
        return one_step(session)


def one_step(session):
    """The outputs, or the loss of the whole batch."""
    torch.manual_seed(0)
    losses = []
    session.loss_seen = lambda loss: losses.append(loss.detach())
    output = session.step(session.prepare())
    return torch.stack(losses).mean() if losses else output


@pytest.mark.slow
def test_buckets_compute_the_same_at_every_length(tmp_path):
    subject = subject_of(of_varying_length(), tmp_path)
    choice = LeverChoice(lever="shape_buckets", parameters={"max_graphs": 4})
    plain = copy.deepcopy(subject.model)
    assert find_lever("shape_buckets").refuses(subject) is None
    apply_levers(subject, (choice,))
    with torch.no_grad():
        for length in (5, 6, 7, 8):
            x = torch.randn(2, length, 16)
            torch.testing.assert_close(subject.model(x), plain(x))
    assert not_applied(subject, (choice,)) is None


def outputs_and_probe(subject, choice):
    with contextlib.ExitStack() as stack:
        for setting in subject.settings:
            stack.enter_context(setting())
        session = stack.enter_context(subject.finished().open())
        session.activate()
        return one_step(session), not_applied(subject, (choice,))


@pytest.mark.parametrize(
    "applied",
    {
        a.lever: a
        for a in FITS
        if a.lever not in {"threads", "compile", *WRAPPERS} and a != AUTOCAST_AROUND_CALLS
    }.values(),
    ids=lambda a: a.lever,
)
def test_the_probe_sees_that_a_lever_was_not_applied(applied, tmp_path):
    subject = subject_of(applied.program(), tmp_path)
    lever = find_lever(applied.lever)
    assert lever.not_applied(subject, applied.parameters) is not None


@pytest.mark.parametrize(
    ("name", "program", "said"), REFUSED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_it_refuses_where_it_cannot_help(name, program, said, tmp_path):
    assert said in (find_lever(name).refuses(subject_of(program(), tmp_path)) or "")


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "names",
    [
        ("fold_batchnorm", "channels_last", "onnxruntime"),
        ("fold_batchnorm", "channels_last", "openvino"),
    ],
    ids="+".join,
)
def test_a_runtime_computes_the_same_after_other_levers_and_on_another_batch(names, tmp_path):
    work = convolutions()
    subject, unchanged = subject_of(copy.deepcopy(work), tmp_path / "first"), copy.deepcopy(work)
    other = torch.randn(5, 3, 12, 12)
    with torch.inference_mode():
        reference = subject.model(work.inputs), subject.model(other)
    choices = [LeverChoice(lever=name) for name in names]
    apply_levers(subject, choices)
    assert not subject.fixed_shapes
    model = subject.finished().model
    with torch.inference_mode():
        changed = model(work.inputs), model(other)
    assert not_applied(subject, choices) is None
    assert {path.parent for path in subject.artefacts[names[-1]]} == {tmp_path / "first"}
    fix_class = coarsest([find_lever(name).fix_class for name in names])
    assert numeric_error(changed, reference, Limits().largest_error(fix_class)).within_tolerance
    again = subject_of(unchanged, tmp_path / "again")
    again.ready = subject.artefacts
    apply_levers(again, choices)
    assert again.artefacts == subject.artefacts
    with torch.inference_mode():
        assert numeric_error(again.finished().model(other), changed[1], 0.0).max_abs == 0


def test_compile_is_tried_with_dynamic_shapes_where_inputs_vary(tmp_path):
    lever, sizes = find_lever("compile"), itertools.cycle([3, 5])
    varied = pm.Inference(nn.Linear(4, 4), lambda: torch.randn(next(sizes), 4))
    tried = lever.choices(subject_of(varied, tmp_path))
    assert all(parameters["dynamic"] for parameters in tried)
    assert not any("dynamic" in parameters for parameters in lever.choices(subject_of(mlp(), tmp_path)))
    assert lever.lines({"mode": "default", "freezing": True, "dynamic": True})[-1] == (
        "model = torch.compile(model, dynamic=True)"
    )


def test_attention_of_torch_is_written_out_for_the_compiler_and_restored_after_each_call(tmp_path):
    subject = subject_of(encoder(), tmp_path)
    assert all(parameters["fastpath"] is False for parameters in find_lever("compile").choices(subject))
    before = torch.backends.mha.get_fastpath_enabled()
    with written_out():
        assert not torch.backends.mha.get_fastpath_enabled()
    assert torch.backends.mha.get_fastpath_enabled() == before


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["int8_weight_only", "int8_dynamic"])
def test_quantised_attention_of_torch_runs_compiled_with_frozen_weights(name, tmp_path):
    work = encoder()
    subject = subject_of(work, tmp_path)
    with torch.inference_mode():
        reference = work.model(work.inputs)
    compile_choice = LeverChoice(lever="compile", parameters=find_lever("compile").choices(subject)[0])
    choices = (LeverChoice(lever=name), compile_choice)
    apply_levers(subject, choices)
    changed, seen = outputs_and_probe(subject, choices[1])
    assert seen is None
    assert numeric_error(changed, reference, 0.0).max_rel < 0.1


def test_a_batch_in_parts_that_cannot_be_joined_is_told(tmp_path):
    subject = subject_of(summed_over_the_batch(), tmp_path)
    apply_levers(subject, (LeverChoice(lever="micro_batches", parameters={"samples": 2}),))
    with pytest.raises(UserProgramError, match="no row for each sample"):
        subject.model(torch.randn(8, 4))


def test_blocks_are_found_where_they_are_repeated():
    model = Blocks()
    assert repeated_blocks(model) == list(model.layers)
    stages = nn.Sequential(nn.Sequential(Block(), Block()), nn.Sequential(Block(), Block()))
    assert repeated_blocks(stages) == list(stages)
    assert repeated_blocks(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))) == []


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_a_missing_package_is_named_with_what_installs_it(name, monkeypatch):
    lever = find_lever(name)
    monkeypatch.setattr(type(lever), "modules", ("no_such_package",))
    assert missing_packages(lever) == f"needs no_such_package: pip install 'pyrometer[{lever.extra}]'"


def test_what_one_command_would_install_is_told_once():
    lacking = [find_lever(name) for name in ("onnxruntime", "openvino", "openvino_bf16")]
    assert uninstalled([]) is None
    told = "not tried without their packages: onnxruntime, openvino, openvino_bf16; pip install 'pyrometer[onnx,openvino]'"
    assert uninstalled(lacking) == told


@pytest.mark.slow
def test_a_summed_table_is_exported_to_onnx_as_a_loop():
    """Why `onnxruntime` refuses such models; once there is an operator for them, it need not."""
    work = summed_table()
    with library("torch.onnx.export"):
        made = torch.onnx.export(work.model.eval(), (work.inputs,), dynamo=True, verbose=False)
    assert "Loop" in {node.op_type for node in made.model.graph}


def test_every_lever_is_tested():
    of_one_process = {name for name, lever in levers().items() if "ranks" not in lever.kinds}
    assert of_one_process == {applied.lever for applied in FITS} | {name for name, _, _ in REFUSED}


@pytest.mark.parametrize("name", ["compile", "compile_regional", "aot_inductor"])
def test_without_a_compiler_on_the_machine_what_compiles_is_refused_and_says_what_to_install(name, tmp_path):
    from torch._inductor import config

    subject = subject_of(blocks(), tmp_path)
    assert find_lever(name).refuses(subject) is None
    with config.patch({"cpp.cxx": ("/absent/g++",)}):
        assert "install g++ or clang" in find_lever(name).refuses(subject)
