"""PYR203: containers that only grow."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.rules.case import Case

CODE = "PYR203"

CLASS = """\
import torch
from collections import deque
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        {begin}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        {line}
        return self.layer(x)
{more}
"""


def net(line: str, begin: str = "self.seen = []", more: str = "") -> str:
    return CLASS.format(line=line, begin=begin, more=more)


@pytest.mark.parametrize(
    ("line", "begin"),
    [
        ("self.seen.append(x)  # <-", "self.seen = []"),
        ("self.seen.append(x.detach())  # <-", "self.seen = list()"),
        ('self.seen.append({"x": x, "n": 3})  # <-', "self.seen = deque()"),
        ("self.seen.append((x, x.mean()))  # <-", "self.seen: list = []"),
    ],
)
def test_it_finds_attributes_that_only_grow(fires, line, begin):
    fires(CODE, net(line, begin))


@pytest.mark.parametrize(
    ("line", "begin", "more"),
    [
        ("self.seen.append(x)", "self.seen = deque(maxlen=10)", ""),
        ("self.seen.append(x.shape)", "self.seen = []", ""),
        ("self.seen.append(x.mean().item())", "self.seen = []", ""),
        ("self.seen.append(x)", "self.seen = []", "\n    def reset(self):\n        self.seen = []"),
        ("self.seen.append(x)", "self.seen = []", "\n    def reset(self):\n        self.seen.clear()"),
        ("self.seen.append(x)", "self.seen = []", "\n    def trim(self):\n        del self.seen[:-10]"),
        (
            "self.seen.append(x)",
            "self.seen = []",
            "\n    def trim(self):\n        self.seen[:] = self.seen[-10:]",
        ),
        ("self.seen.append(x); self.seen.pop(0)", "self.seen = []", ""),
        ("self.seen.append(x)", "self.seen = make()", ""),
        ("seen = []; seen.append(x)", "pass", ""),
    ],
)
def test_it_is_silent_about_bounds_trimming_and_what_is_no_tensor(silent, line, begin, more):
    silent(CODE, net(line, begin, more))


def test_a_list_in_an_endless_loop_is_found_and_one_in_a_loop_over_data_is_not(fires, silent):
    text = """\
    import torch
    from torch import nn

    @torch.no_grad()
    def run(sensors):
        model, plans = nn.Linear(2, 2), []
        {loop}
            plans.append(model(sensors.read())){mark}
        return plans
    """
    fires(CODE, text.format(loop="while True:", mark="  # <-"))
    silent(CODE, text.format(loop="for batch in loader:", mark=""))
    silent(
        CODE, text.format(loop="while True:", mark="").replace("return plans", "return torch.stack(plans)")
    )


def test_a_class_that_is_there_to_record_is_left_alone(silent):
    silent(CODE, net("self.seen.append(x)").replace("class Net", "class OutputLogger"))


@pytest.mark.slow
def test_a_watched_cache_is_named_and_with_a_bound_it_grows_no_more(findings):
    model, cache = nn.Linear(16, 16), {}
    model.requires_grad_(False)

    def remembering() -> None:
        cache[len(cache)] = model(torch.randn(4, 16))

    profile = pm.profile_memory(pm.Call(remembering), predict=False, leak_steps=25)
    (finding,) = findings(CODE, Case(target="t", memory=profile))
    assert "dict of" in finding.evidence["container"]
    assert finding.cost.bytes == 4 * 16 * 4

    def forgetting() -> None:
        remembering()
        exec(finding.advice.rewrite, {"cache": cache})

    for _ in range(100):
        forgetting()
    after = pm.profile_memory(pm.Call(forgetting), predict=False, leak_steps=25)
    assert findings(CODE, Case(target="t", memory=after)) == []
