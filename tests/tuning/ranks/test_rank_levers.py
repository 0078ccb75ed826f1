"""Levers of many ranks do to a script what they say; here on a group of one, where all of it runs in this process."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import fsdp
from torch.nn.parallel import DistributedDataParallel

from pyrometer.errors import InputError, NotApplicableError
from pyrometer.tuning.levers.applying import apply_levers, not_applied, subject_of
from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.levers.families.ranks.top_k import TopK
from pyrometer.tuning.levers.rank_subject import RankSubject
from pyrometer.tuning.levers.registry import find_lever, levers
from pyrometer.tuning.ranks.rank import apply_to, global_batch, survey
from pyrometer.tuning.ranks.watch import Watch
from pyrometer.workload.inference import Inference

RANK_LEVERS = [name for name, lever in levers().items() if "ranks" in lever.kinds]


@pytest.fixture(scope="module", autouse=True)
def group(tmp_path_factory):
    place = tmp_path_factory.mktemp("group") / "store"
    dist.init_process_group("gloo", init_method=f"file://{place}", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture(autouse=True)
def world(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(8, 8) for _ in range(5))
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x):
        for block in self.blocks:
            x = torch.relu(block(x))
        return x


def train(model, passes=(1, 1, 1), *, sync=None):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    draw = torch.Generator().manual_seed(1)
    for number in passes:
        for _ in range(number):
            loss = (model(torch.randn(4, 8, generator=draw)) - 1).square().mean()
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def ddp_script(passes=(1, 1, 1), **settings):
    torch.manual_seed(0)
    model = DistributedDataParallel(Blocks(), **settings)
    train(model, passes)
    return [parameter.detach().clone() for parameter in model.parameters()]


def fsdp_script(*, shard_blocks=True):
    torch.manual_seed(0)
    model = Blocks()
    for block in model.blocks if shard_blocks else ():
        fsdp.fully_shard(block)
    fsdp.fully_shard(model)
    train(model)
    return [parameter.full_tensor().detach().clone() for parameter in model.parameters()]


def watched(script, *choices):
    """The subject after a script ran with levers, and what it computed."""
    subject = RankSubject()
    apply_to(subject, choices)
    with Watch(subject) as watch:
        weights = script()
    return subject, watch, weights


def choice(name, **parameters):
    return LeverChoice(lever=name, parameters=parameters)


def test_a_watch_sees_steps_losses_and_gradients_and_leaves_torch_as_it_was():
    before = DistributedDataParallel.__init__, fsdp.fully_shard, torch.autograd.backward
    subject, watch, _ = watched(lambda: ddp_script((2, 2, 2)))
    assert before == (DistributedDataParallel.__init__, fsdp.fully_shard, torch.autograd.backward)
    assert (watch.num_steps, subject.accumulation, subject.micro_batch) == (3, 2, 4)
    assert global_batch(subject, 2) == "global batch 16 = 2 ranks × 4 samples × 2 accumulated"
    losses, gradients = watch.learned()
    assert losses == sorted(losses, reverse=True)
    assert [each.shape for each in gradients] == [each.shape for each in subject.whole.parameters()]


def test_torch_is_as_it_was_when_the_script_raises():
    before = DistributedDataParallel.__init__, fsdp.fully_shard, torch.autograd.backward
    with pytest.raises(ZeroDivisionError):
        watched(lambda: 1 / 0)
    assert before == (DistributedDataParallel.__init__, fsdp.fully_shard, torch.autograd.backward)


def test_a_script_without_ddp_or_fsdp_is_refused_at_its_first_update():
    with pytest.raises(InputError, match="no model is in DistributedDataParallel"):
        watched(lambda: train(nn.Linear(8, 8)))


@pytest.mark.parametrize(
    ("wanted", "script"),
    [
        (choice("ddp_buckets", mb=1), {}),
        (choice("ddp_bucket_views"), {}),
        (choice("ddp_static_graph"), {}),
        (choice("ddp_own_buffers"), {}),
        (choice("ddp_no_unused"), {"find_unused_parameters": True}),
        (choice("ddp_no_sync", passes=1), {}),
        (choice("ddp_top_k", share=1.0), {}),
    ],
    ids=lambda each: getattr(each, "lever", ""),
)
def test_exact_levers_of_ddp_are_in_force_and_change_no_number(wanted, script):
    subject, _, weights = watched(lambda: ddp_script(**script), wanted)
    if wanted.lever != "ddp_no_sync":  # one pass has nothing to leave out
        assert not_applied(subject, [wanted]) is None
    for one, other in zip(weights, ddp_script(**script), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    "wanted", [choice("ddp_fp16"), choice("ddp_power_sgd", rank=1), choice("ddp_top_k", share=0.1)]
)
def test_hooks_are_called_and_lose_something(wanted):
    subject, _, weights = watched(lambda: ddp_script((1,) * 4), wanted)
    assert not_applied(subject, [wanted]) is None
    assert subject.counts[wanted.lever] >= 4
    assert any(not torch.equal(one, other) for one, other in zip(weights, ddp_script((1,) * 4), strict=True))


def test_a_lever_that_is_not_in_force_is_told():
    subject, _, _ = watched(ddp_script)
    assert not_applied(subject, [choice("ddp_bucket_views")]) == (
        "ddp_bucket_views: DistributedDataParallel has gradient_as_bucket_view=False"
    )
    assert not_applied(subject, [choice("ddp_fp16")]) == "ddp_fp16: the hook was not called"


def test_gradients_are_sent_once_per_update_also_where_an_epoch_ends_within_one():
    """A hook that takes the place of sending shows what was sent: of passes that were left out nothing arrives."""
    wanted, passes = choice("ddp_no_sync", passes=3), (3, 3, 2, 3)
    sent = []

    def script():
        model = DistributedDataParallel(Blocks())
        model.register_comm_hook(sent, counting)
        train(model, passes)
        return [parameter.detach().clone() for parameter in model.parameters()]

    def counting(state, bucket):
        state.append(bucket.index())
        done = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    torch.manual_seed(0)
    plain = script()
    assert len(sent) == sum(passes)
    sent.clear()
    torch.manual_seed(0)
    subject, _, weights = watched(script, wanted)
    assert len(sent) == 3  # the short update sends by itself
    assert not_applied(subject, [wanted]) is None
    for one, other in zip(weights, plain, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    ("wanted", "shard_blocks", "exact"),
    [
        (choice("fsdp_keep_gathered"), True, True),
        (choice("fsdp_wrapping", together=2), True, True),
        (choice("fsdp_wrapping", together=0), True, True),
        (choice("fsdp_wrapping", together=1), False, True),
        (choice("fsdp_bf16"), True, False),
    ],
    ids=lambda each: str(getattr(each, "label", "")),
)
def test_levers_of_fsdp_are_in_force(wanted, shard_blocks, exact):
    def script():
        return fsdp_script(shard_blocks=shard_blocks)

    plain, _, expected = watched(script)
    assert not_applied(plain, [wanted]) is not None or wanted.parameters.get("together") != 1
    subject, _, weights = watched(script, wanted)
    assert not_applied(subject, [wanted]) is None
    near = {} if exact else {"rtol": 0.05, "atol": 0.05}
    for one, other in zip(weights, expected, strict=True):
        torch.testing.assert_close(one, other, **near)


def test_the_survey_says_what_may_be_tried_and_why_the_rest_does_not_fit():
    subject, _, _ = watched(lambda: ddp_script((2, 2)))
    surveyed = survey(subject, RANK_LEVERS)
    assert surveyed.choices["ddp_no_sync"] == [{"passes": 2}]
    assert {"ddp_bucket_views", "ddp_static_graph", "ddp_own_buffers", "ddp_fp16"} <= set(surveyed.choices)
    assert surveyed.refused["fsdp_bf16"] == "the script does not use fully_shard"
    assert surveyed.refused["ddp_bf16"] == "needs NCCL or XCCL, and the script uses gloo"
    assert surveyed.refused["ddp_no_unused"] == "find_unused_parameters is False already"
    assert "ddp_buckets" in surveyed.refused  # all gradients fit into the smallest bucket
    sharded, _, _ = watched(fsdp_script)
    surveyed = survey(sharded, RANK_LEVERS)
    assert surveyed.choices["fsdp_wrapping"] == [{"together": 2}, {"together": 4}, {"together": 0}]
    assert surveyed.refused["fsdp_prefetch"] == "the script is on the CPU: there is no stream to gather on"
    assert surveyed.refused["ddp_fp16"] == "the script does not use DistributedDataParallel"


def test_parameters_that_got_no_gradient_forbid_promises():
    class Half(Blocks):
        def forward(self, x):
            return self.blocks[0](x)

    def script():
        train(DistributedDataParallel(Half(), find_unused_parameters=True))

    subject, _, _ = watched(script)
    for name in ("ddp_no_unused", "ddp_static_graph"):
        assert find_lever(name).refuses(subject) == "blocks.1.bias got no gradient in some step"


def test_top_k_sends_late_what_it_leaves_out():
    """The sum of what was sent and what is kept is the sum of all gradients."""

    class Bucket:
        def __init__(self, gradient):
            self.gradient = gradient

        def buffer(self):
            return self.gradient

        def index(self):
            return 0

        def is_last(self):
            return True

    state = TopK(None, 0.25, first_compressed=0)
    gradients = [torch.randn(16) for _ in range(5)]
    sent = [TopK.hook(state, Bucket(gradient.clone())).wait().clone() for gradient in gradients]
    assert all(int(each.count_nonzero()) == 4 for each in sent)
    torch.testing.assert_close(sum(sent) + state._kept[0], sum(gradients))
    with pytest.raises(ValueError, match="share: got 0; legal is above 0 and at most 1"):
        TopK(None, 0)


def test_a_workload_of_one_process_refuses_them(tmp_path):
    subject = subject_of(Inference(nn.Linear(2, 2), torch.randn(1, 2)), tmp_path)
    with pytest.raises(NotApplicableError, match="it changes a script on many ranks"):
        apply_levers(subject, [choice("ddp_fp16")])
