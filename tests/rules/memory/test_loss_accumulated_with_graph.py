"""PYR202: sums and lists that hold graphs, in text and in watched runs."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.memory.leaks.watch import watch_memory
from pyrometer.memory.profile import LeakSite
from pyrometer.rules.case import Case

CODE = "PYR202"

TRAIN = """\
from collections import deque

import torch
from torch import nn

def train(loader, epochs):
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total, history, metrics = 0.0, [], {{"loss": 0.0}}
    logs, by_name, recent, last = {{}}, {{"loss": []}}, deque(), deque(maxlen=8)
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        {line}
    {after}
"""


def train(line: str, after: str = "print(total)") -> str:
    return TRAIN.format(line=line, after=after)


@pytest.mark.parametrize(
    "line",
    [
        "total += loss  # <-",
        "total = total + loss  # <-",
        "total = loss + total  # <-",
        "total += loss * len(x)  # <-",
        "history.append(loss)  # <-",
        "history.append((loss, 3))  # <-",
        'history.append({"loss": loss})  # <-',
        'metrics["loss"] += loss  # <-',
        "total -= loss  # <-",
        "total = 1 + total + 0.5 * loss  # <-",
        "total = 0.9 * total + 0.1 * loss  # <-",
        "total: float = total + loss  # <-",
        "total = torch.add(total, loss)  # <-",
        "total += loss if len(x) else 0  # <-",
        "history.append(dict(value=loss, size=3))  # <-",
        "history.extend([loss])  # <-",
        "history.insert(0, loss)  # <-",
        "history += [loss]  # <-",
        "value = loss\n        history.append(value)  # <-",
        'logs.setdefault("loss", []).append(loss)  # <-',
        'by_name["loss"].append(loss)  # <-',
        "logs[x] = loss  # <-",
        "recent.append(loss)  # <-",
    ],
)
def test_it_finds_what_keeps_a_graph_in_a_training_loop(fires, line):
    fires(CODE, train(line))


@pytest.mark.parametrize(
    "line",
    [
        "total += loss.item()",
        "total += loss.detach()",
        "total += float(loss)",
        "history.append(loss.detach().cpu())",
        "history.append(loss); history.clear()",
        "history.append((3, loss.item()))",
        "value = loss.detach()\n        total = 0.9 * total + 0.1 * value",
        "last.append(loss)",
        'logs["last"] = loss',
        "logs[x] = loss\n        logs.clear()",
        "logs[x] = float(loss)",
        "parts = {}\n        parts[x] = loss",
        "total = loss + 1",
        "if len(history) % 100 == 0:\n            print(loss)",
        "with torch.no_grad():\n            total += nn.functional.mse_loss(model(x), y)",
    ],
)
def test_it_is_silent_about_values_without_a_graph(silent, line):
    silent(CODE, train(line))


KEEPERS = """
def note(history, value):
    history.append(value{as_it_is})

def add(total, value):
    return total + value{as_it_is}

class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n=1):
        self.total += value{as_it_is} * n
        self.count += n

    def reset(self):
        self.total = 0.0

"""


def handed(before: str, line: str, as_it_is: str = "") -> str:
    keepers = KEEPERS.format(as_it_is=as_it_is)
    text = train(line).replace("    for x, y", f"    {before}\n    for x, y")
    return text.replace("\ndef train", f"{keepers}\ndef train")


HANDED = [
    ("pass", "note(history, loss)  # <-"),
    ("pass", "note(value=loss, history=history)  # <-"),
    ("pass", "total = add(total, loss)  # <-"),
    ("meter = Meter()", "meter.update(loss)  # <-"),
    ("meter = Meter()", "meter.update(loss, n=len(x))  # <-"),
    ("def record(value): history.append((1, value))", "record(loss)  # <-"),
]


@pytest.mark.parametrize(("before", "line"), HANDED)
def test_it_finds_what_a_function_of_the_file_keeps(fires, before, line):
    fires(CODE, handed(before, line))


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ("pass", "note([], loss)"),
        ("pass", "note(history, loss.detach())"),
        ("pass", "note(history, loss)\n        history.clear()"),
        ("pass", "begun = add(0.0, loss)"),
        ("meter = Meter()", "meter.update(loss.item())"),
        ("meter = Meter()", "meter.update(loss)\n        meter.reset()"),
        ("pass", "meter = Meter()\n        meter.update(loss)"),
        ("meter = Meter()", "with torch.no_grad():\n            meter.update(loss * 1)"),
        ("def record(value): print(value)", "record(loss)"),
        ("def record(value):\n        value = value.item()\n        history.append(value)", "record(loss)"),
    ],
)
def test_it_is_silent_about_functions_that_keep_no_graph(silent, before, line):
    silent(CODE, handed(before, line))


@pytest.mark.parametrize(("before", "line"), HANDED[:5])
@pytest.mark.parametrize("way", [".item()", ".detach()"])
def test_it_is_silent_where_the_function_lets_the_graph_go(silent, before, line, way):
    silent(CODE, handed(before, line.removesuffix("  # <-"), way))


def test_it_is_silent_where_something_goes_backwards_through_what_the_function_keeps(silent):
    text = handed("meter = Meter()", "meter.update(loss)")
    silent(CODE, text.replace("print(total)", "meter.total.backward()"))


def test_what_a_function_keeps_is_detached_where_it_is_handed_over(matches, fixed):
    text = handed("meter = Meter()", "meter.update(loss)")
    (match,) = matches(CODE, text)
    assert match.fix.fix_class == "semantic"
    assert match.message.startswith("`loss` is kept in the sum in line ")
    changed = fixed(text, [match])
    assert "meter.update(loss.detach())" in changed
    kept = []
    for version in (text, changed):
        names: dict[str, object] = {}
        exec(version.replace("print(total)", "return meter.total"), names)
        torch.manual_seed(0)
        kept.append(names["train"]([(torch.ones(3, 2), torch.zeros(3, 2))] * 4, 1))
    assert torch.equal(kept[0], kept[1])
    assert (kept[0].requires_grad, kept[1].requires_grad) == (True, False)


@pytest.mark.parametrize(
    "text",
    [
        # Backpropagation through time: the sum begins anew in each step, and is what goes backwards.
        """\
        import torch
        from torch import nn

        def train(loader, optimizer):
            cell, head = nn.Linear(2, 2), nn.Linear(2, 2)
            for x, y in loader:
                loss = 0.0
                for t in range(100):
                    loss += head(cell(x[t])).sum()
                loss.backward()
                optimizer.step()
        """,
        # A policy gradient: what is gathered in the episode goes backwards after it.
        """\
        import torch
        from torch import nn

        def episode(num_steps, optimizer):
            policy = nn.Linear(2, 2)
            log_probs = []
            for step in range(num_steps):
                log_probs.append(policy(torch.randn(2)).log_softmax(0)[0])
            loss = -torch.stack(log_probs).sum()
            loss.backward()
            optimizer.step()
        """,
        # The caller may go backwards.
        """\
        import torch
        from torch import nn

        def total_loss(loader):
            model = nn.Linear(2, 2)
            total = 0.0
            for x, y in loader:
                total += nn.functional.mse_loss(model(x), y)
            return total
        """,
        # A sum over layers within one step.
        """\
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(2, 2)])

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                total = 0.0
                for layer in self.layers:
                    total += layer(x).sum()
                return total
        """,
    ],
)
def test_it_is_silent_where_the_sum_goes_backwards_or_begins_anew(silent, text):
    silent(CODE, text)


def test_an_evaluation_that_only_prints_its_sum_is_found(fires):
    text = """\
    import torch
    from torch import nn

    def evaluate(loader):
        model = nn.Linear(2, 2)
        total = 0.0
        for x, y in loader:
            total += nn.functional.mse_loss(model(x), y)  # <-
        print(f"{total.item():.3f}")
    """
    fires(CODE, text)


HOARD = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        {begin}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        self.cache.append({value}){mark}
        return y
{more}
"""


def hoard(begin="self.cache = []", value="y", mark="", more=""):
    return HOARD.format(begin=begin, value=value, mark=mark, more=more)


def test_an_attribute_that_only_grows_is_told_once_with_a_graph_here_and_without_as_a_container(
    fires, silent, matches, fixed
):
    kept = hoard(mark="  # <-", more="\n    def __len__(self):\n        return len(self.cache)")
    fires(CODE, kept)
    silent("PYR203", kept)
    without = fixed(kept, matches(CODE, kept))
    assert "self.cache.append(y.detach())" in without
    silent(CODE, without)
    fires("PYR203", without)


@pytest.mark.parametrize(
    "text",
    [
        hoard(begin="self.cache = collections.deque(maxlen=8)"),
        hoard(more="\n    def penalty(self):\n        return torch.stack(self.cache).sum()"),
        hoard(more="\ndef reset(net):\n    net.cache.clear()"),
        hoard().replace("class Net", "class OutputRecorder"),
    ],
)
def test_an_attribute_that_is_bounded_emptied_or_used_elsewhere_is_left_alone(silent, text):
    silent(CODE, text)


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("total += loss", "finish(total, optimizer)"),
        ("total += loss", "finish(total / 4, optimizer)"),
        ("total += loss\n        finish(value=total)", "pass"),
        ("total += loss\n        mean = total / 3\n        mean.backward(retain_graph=True)", "pass"),
    ],
)
def test_it_is_silent_where_the_sum_may_go_backwards_elsewhere(silent, line, after):
    helper = "\ndef finish(value, optimizer=None):\n    value.backward()\n"
    silent(CODE, train(line, after) + helper)


@pytest.mark.parametrize(
    "after",
    [
        "sums.append(total)",
        "writer.add_scalar('loss', total / 4)",
        "assert torch.isfinite(total)",
        "loss = total / 4",
    ],
)
def test_noting_or_testing_a_sum_is_no_reason_to_keep_its_graph(fires, after):
    fires(CODE, train("total += loss  # <-", after))


def test_the_fix_of_a_sum_that_is_only_read_is_exact_and_of_what_escapes_it_is_not(matches):
    classes = [
        matches(CODE, train(line, after))[0].fix.fix_class
        for line, after in [
            ("total += loss", "print(total)"),
            ("total += loss", "return total"),
            ("history.append(loss)", "print(history)"),
        ]
    ]
    assert classes == ["exact", "semantic", "semantic"]


def test_the_fix_keeps_the_sum_to_the_last_bit_and_lets_the_graph_go(matches, fixed):
    text = train("total += loss * 2", "return total")
    changed = fixed(text, matches(CODE, text))
    assert "total += (loss * 2).detach()" in changed
    sums = []
    for version in (text, changed):
        names: dict[str, object] = {}
        exec(version, names)
        torch.manual_seed(0)
        sums.append(names["train"]([(torch.ones(3, 2), torch.zeros(3, 2))] * 4, 1))
    assert torch.equal(sums[0], sums[1])
    assert sums[0].requires_grad
    assert not sums[1].requires_grad


@pytest.mark.slow
def test_a_watched_sum_of_graphs_is_named_and_detached_it_grows_no_more(findings):
    model, sums = nn.Linear(16, 16), {"kept": torch.zeros(()), "let go": torch.zeros(())}

    def keeping() -> None:
        sums["kept"] = sums["kept"] + model(torch.randn(4, 16)).pow(2).mean()

    def letting_go() -> None:
        sums["let go"] = sums["let go"] + model(torch.randn(4, 16)).pow(2).mean().detach()

    profile = pm.profile_memory(pm.Call(keeping), predict=False, leak_steps=25)
    (finding,) = findings(CODE, Case(target="t", memory=profile))
    assert finding.evidence["nodes_per_step"] > 0
    assert finding.resource.startswith("leak:")
    assert finding.advice.rewrite is not None
    assert watch_memory(pm.Call(letting_go), steps=25).verdict == "stable"


def test_the_robot_is_told_at_the_line_that_appends(robot, findings):
    (finding,) = findings(CODE, robot)
    line = robot.modules[0].lines[finding.where.line - 1]
    assert "self.history_buffer.append(" in line
    assert "detach()" in finding.advice.sketch


def test_sites_without_a_graph_are_of_no_interest(findings, leaking):
    plain = LeakSite(
        file="a.py", line=3, holder="cache[…]", bytes_per_step=10.0, container="dict of 4", graph_state="none"
    )
    assert findings(CODE, Case(target="t", memory=leaking(plain))) == []
    stable = leaking(LeakSite(file="a.py", line=3, holder="x", nodes_per_step=2.0), verdict="stable")
    assert findings(CODE, Case(target="t", memory=stable)) == []


def test_a_loop_whose_function_goes_backward_keeps_the_graphs_of_what_that_returns(lines):
    text = """
    import torch
    from torch import nn

    class Trainer:
        def __init__(self, model, optimizer, loader):
            self.model, self.optimizer, self.loader = model, optimizer, loader
            self.criterion, self.curve = nn.MSELoss(), []

        def step(self, x, y):
            loss = self.criterion(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            return loss

        def run(self):
            running = 0
            for x, y in self.loader:
                loss = self.step(x, y)
                running = running + loss
            self.curve.append(running)
    """
    assert lines(CODE, text) == [20]
