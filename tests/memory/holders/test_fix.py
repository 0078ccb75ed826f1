"""Each fix is put into the program it was given for: then the bytes are gone."""

from __future__ import annotations

import gc

import pytest
import torch
from representative import every

from pyrometer.memory.holders.fix import fix_for
from pyrometer.memory.holders.graph import retained_graph
from pyrometer.memory.holders.record import Holder
from pyrometer.memory.holders.view import pinned_storage

EXAMPLE = "# for example: "

# Source with a LINE that leaks, the line as it was written, the fix that is given, and what is kept (for its graph).
INSTEAD = {
    "losses kept with their graphs": (
        """
        import torch
        from torch import nn
        model = nn.Linear(8, 8)
        losses = []
        def step():
            hidden = watch(torch.relu(model(torch.randn(4, 8))))
            loss = (hidden ** 2).mean()
            LINE
        for _ in range(3):
            step()
        """,
        "losses.append(loss)",
        "losses.append(loss.item())",
        lambda p: p["losses"][0],
    ),
    "losses of mse_loss, detached as everyone says": (
        """
        import torch
        from torch import nn
        model = nn.Linear(8, 8)
        losses = []
        def step():
            loss = nn.functional.mse_loss(model(torch.randn(4, 8)), torch.randn(4, 8))
            loss.backward()
            watch(loss)
            LINE
        for _ in range(3):
            step()
        """,
        "losses.append(loss.detach())",
        "losses.append(loss.item())",
        lambda p: p["losses"][0],
    ),
    "losses in a dictionary of an object": (
        """
        import torch
        from torch import nn
        class Trainer:
            def __init__(self):
                self.model = nn.Linear(8, 8)
                self.metrics = {"losses": []}
            def step(self):
                loss = (watch(torch.relu(self.model(torch.randn(4, 8)))) ** 2).mean()
                LINE
        trainer = self = Trainer()
        self.step()
        """,
        'self.metrics["losses"].append(loss)',
        '.metrics["losses"].append(loss.item())',
        lambda p: p["trainer"].metrics["losses"][0],
    ),
    "a running sum": (
        """
        import torch
        from torch import nn
        model = nn.Linear(8, 8)
        total = 0.0
        def step():
            global total
            loss = (watch(torch.relu(model(torch.randn(4, 8)))) ** 2).mean()
            LINE
        for _ in range(3):
            step()
        """,
        "total = total + loss",
        "total = total.item()",
        lambda p: p["total"],
    ),
    "outputs kept after backward": (
        """
        import torch
        from torch import nn
        model = nn.Linear(8, 8)
        rows = []
        def step():
            hidden = watch(torch.relu(model(torch.randn(4, 8))))
            row = hidden[0]
            LINE
        for _ in range(3):
            step()
        """,
        "rows.append(row)",
        "rows.append(row.detach().clone())",
        lambda p: p["rows"][0],
    ),
    "rows of a batch": (
        """
        import torch
        rows = []
        def step():
            batch = watch(torch.randn(64, 8))
            row = batch[0]
            LINE
        for _ in range(3):
            step()
        """,
        "rows.append(row)",
        "rows.append(row.clone())",
        lambda p: p["rows"][0],
    ),
    "the last row under a key": (
        """
        import torch
        examples = {}
        def step():
            row = watch(torch.randn(64, 8))[0]
            LINE
        step()
        """,
        'examples["row"] = row',
        'examples["row"] = examples["row"].clone()',
        lambda p: p["examples"]["row"],
    ),
    "a recurrent state": (
        """
        import torch
        from torch import nn
        model = nn.RNNCell(8, 8)
        state = torch.zeros(4, 8)
        def step():
            global state
            state = model(watch(torch.randn(4, 8)), state)
            LINE
        step()
        """,
        "pass",
        "state = state.detach()",
        lambda p: p["state"],
    ),
}


@pytest.mark.parametrize("way", every(2, INSTEAD))
def test_what_is_stored_instead_lets_the_bytes_go(program, way):
    source, line, fix, kept = INSTEAD[way]
    run = program(source.replace("LINE", line))
    assert run.live_bytes() > 0
    holder = next(one for one in run.holders() if one is not None)
    tensor = kept(run)
    given = fix_for(holder, retained_graph(tensor), pinned_storage(tensor))
    del tensor
    assert given.endswith(fix)
    code = given.removeprefix(EXAMPLE).replace("trainer.", "self.")
    instead = code if given.startswith(EXAMPLE) else f"{line}; {code}"  # else it follows the line, as it is
    fixed = program(source.replace("LINE", instead))
    assert fixed.live_bytes() == 0


# Source, the fix that is given, and how it is put in: run afterwards in the program's own names.
AFTERWARDS = {
    "a forward hook": (
        """
        import torch
        from torch import nn
        model = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        def spy(module):
            features = []
            return module.register_forward_hook(lambda m, i, o: features.append(watch(o.detach())))
        handle = spy(model[0])
        for _ in range(3):
            model(torch.randn(4, 8))
        """,
        "handle.remove()",
    ),
    "an lru_cache": (
        """
        import functools, torch
        @functools.lru_cache(maxsize=None)
        def embed(token):
            return watch(torch.randn(8))
        for token in range(5):
            embed(token)
        """,
        "embed.cache_clear()",
    ),
    "an exception with its traceback": (
        """
        import torch
        class Server:
            def handle(self):
                try:
                    self.infer()
                except ValueError as error:
                    self.error = error
            def infer(self):
                activations = watch(torch.randn(8))
                raise ValueError("bad request")
        server = Server()
        server.handle()
        """,
        "server.error = server.error.with_traceback(None)",
    ),
    "gradients that nobody needs": (
        """
        import torch
        from torch import nn
        model = nn.Linear(8, 8, bias=False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.randn(4, 8)).sum().backward()
        watch(model.weight.grad)
        """,
        "optimizer.zero_grad(set_to_none=True)",
    ),
    "a generator that nobody finishes": (
        """
        import torch
        def batches():
            batch = watch(torch.randn(8))
            yield 1
            yield 2
        loader = batches()
        next(loader)
        """,
        "loader.close()",
    ),
    "an attribute": (
        """
        import torch
        class Agent: pass
        agent = Agent()
        agent.last = watch(torch.randn(8))
        """,
        "agent.last = None",
    ),
    "a set": (
        """
        import torch
        seen = {watch(torch.randn(8))}
        """,
        "seen.clear()",
    ),
    "a list that grows in a function's attribute": (
        """
        import torch
        def step(x):
            step.history.append(watch(x * 2))
        step.history = []
        for _ in range(200):
            step(torch.randn(8))
        """,
        "del step.history[:-100]",
    ),
    "a dictionary by step": (
        """
        import torch
        cache = {}
        for number in range(200):
            cache[number] = watch(torch.randn(8))
        """,
        "while len(cache) > 100: cache.pop(next(iter(cache)))",
    ),
}


@pytest.mark.parametrize("way", AFTERWARDS)
def test_what_is_called_afterwards_lets_the_bytes_go(program, way):
    source, fix = AFTERWARDS[way]
    run = program(source)
    before = run.live_bytes()
    holder = next(one for one in run.holders() if one is not None)
    assert fix_for(holder).removeprefix(EXAMPLE) == fix
    exec(fix, run.names)
    bounded = ":-100" in fix or "> 100" in fix
    assert run.live_bytes() == (before // 2 if bounded else 0)


def test_a_queue_with_an_end_keeps_the_robots_memory_in_bounds(program):
    source = """
        import collections, torch
        class RobotController:
            def __init__(self):
                self.history_buffer = START
            def control_step(self, image):
                self.history_buffer.append({"perception": watch(image * 2)})
        controller = RobotController()
        for _ in range(300):
            controller.control_step(torch.randn(8))
        """
    leaking = program(source.replace("START", "collections.deque()"))
    assert len(leaking.alive()) == 300
    holder = leaking.holders()[0]
    fix = fix_for(holder)
    assert fix == "controller.history_buffer = collections.deque(maxlen=100)"
    fixed = program(source.replace("START", fix.partition(" = ")[2]))
    assert len(fixed.alive()) == 100
    assert fix_for(fixed.holders()[0]) == "# controller.history_buffer is bounded: it never has more than 100"


def test_a_default_argument_is_copied_on_entry(program):
    source = """
        import torch
        def remember(x, seen=[]):
            FIRST
            seen.append(watch(x * 2))
        for _ in range(5):
            remember(torch.randn(8))
        """
    fix = fix_for(program(source.replace("FIRST", "pass")).holder())
    assert fix == "seen = list(seen)"
    assert program(source.replace("FIRST", fix)).live_bytes() == 0


def test_validation_without_no_grad(program):
    source = """
        import torch
        from torch import nn
        model = nn.Linear(8, 8)
        outputs = []
        def validate():
            FIRST
                hidden = watch(torch.relu(model(torch.randn(4, 8))))
                outputs.append(hidden * 2)
        validate()
        """
    run = program(source.replace("FIRST", "if True:"))
    holder = run.holder()
    fix = fix_for(holder, retained_graph(run["outputs"][0]))
    assert (holder.held_by_graph, fix) == (True, "with torch.no_grad():")
    assert program(source.replace("FIRST", fix)).live_bytes() == 0


CYCLES = {
    "objects that know each other": (
        """
        import torch, weakref
        class Trainer:
            def __init__(self):
                self.callback = Callback(self)
                self.outputs = [watch(torch.randn(8))]
        class Callback:
            def __init__(self, trainer):
                self.trainer = trainer
        def main():
            Trainer()
        main()
        """,
        {"self.trainer = weakref.proxy(trainer)": "self.trainer = trainer"},
    ),
    "an output on its own context": (
        """
        import torch
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                out = watch(x * 2)
                ctx.out = out
                return out
            @staticmethod
            def backward(ctx, g):
                return g
        def main(w):
            Scale.apply(w)
        main(torch.ones(4, requires_grad=True))
        """,
        {"ctx.save_for_backward(out)": "ctx.out = out"},
    ),
    "an exception in a variable of its own frame": (
        """
        import torch
        def infer():
            activations = watch(torch.randn(8))
            try:
                raise ValueError
            except ValueError as error:
                failure = error
            return 0
        infer()
        """,
        {"del failure": "return 0"},
    ),
}


@pytest.mark.parametrize("way", every(2, CYCLES))
def test_a_cut_cycle_frees_at_once(program, way):
    source, fixes = CYCLES[way]
    gc.collect()
    gc.disable()
    try:
        run = program(source)
        assert run.live_bytes() > 0
        fix = fix_for(run.holder()).removeprefix(EXAMPLE)
        assert program(source.replace(fixes[fix], fix)).live_bytes() == 0
    finally:
        gc.enable()


def test_hooks_that_return_what_they_are_given(program):
    source = """
        import torch
        def evaluate(w):
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                watch(torch.exp(w))
        evaluate(torch.ones(8, requires_grad=True))
        """
    run = program(source)
    fix = fix_for(run.holder())
    assert fix == "with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):"
    before = "with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):"
    assert program(source.replace(before, fix)).live_bytes() == 0


def test_where_nothing_is_wrong_or_nothing_is_known_no_fix_is_made_up():
    state = Holder(path="optimizer.state[…]", name="optimizer.state", root="optimizer state")
    assert fix_for(None) == ""
    assert fix_for(state).startswith("#")
    assert fix_for(Holder(path="a dict that no name leads to", name="a dict", root="C-level unknown")) == ""
    assert fix_for(Holder(path="not found within 1 s", name="not found", root="not decided")) == ""


def test_a_name_that_is_made_up_is_only_in_a_comment(program):
    made_up = program("""
        import torch
        from torch import nn
        weight = nn.Linear(8, 8).weight
        weight._cache_140614862115440 = watch(torch.randn(8))
        """)
    assert fix_for(made_up.holder()).startswith("# weight gets new attributes")
    longer = Holder(path='s["h"]', name="s", expression='s["h"]', root="closure", container="dict", length=1)
    assert fix_for(longer, lengthens=True).startswith('# s["h"] gets longer')


def test_a_tensor_is_not_changed_by_the_advice():
    x = torch.ones(4, requires_grad=True)
    loss = torch.exp(x).sum()
    holder = Holder(
        path="losses[…]", name="losses", expression="losses[…]", root="module global", container="list"
    )
    fix_for(holder, retained_graph(loss), pinned_storage(loss))
    loss.backward()
    assert x.grad is not None
