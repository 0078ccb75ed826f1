"""Thirty-odd ways to keep a tensor alive; each is named as its user would write it."""

from __future__ import annotations

import pytest

WAYS = {
    "list in a module": (
        """
        import torch
        losses = []
        for _ in range(3):
            losses.append(watch(torch.randn(4)))
        """,
        ("losses[…]", "module global", "list", 3),
    ),
    "robot controller": (
        """
        import torch
        class RobotController:
            def __init__(self):
                self.history_buffer = []
            def control_step(self, image):
                perception = image * 2
                self.history_buffer.append({"perception": watch(perception), "action": 0})
        controller = RobotController()
        for _ in range(5):
            controller.control_step(torch.randn(8, 8))
        """,
        ('controller.history_buffer[…]["perception"]', "instance attribute", "list", 5),
    ),
    "deque with a limit": (
        """
        import torch
        from collections import deque
        class Replay:
            def __init__(self):
                self.buffer = deque(maxlen=7)
        replay = Replay()
        for _ in range(9):
            replay.buffer.append(watch(torch.randn(3)))
        """,
        ("replay.buffer[…]", "instance attribute", "deque", 7),
    ),
    "dictionary of lists": (
        """
        import torch
        from collections import defaultdict
        class Trainer:
            def __init__(self):
                self.metrics = defaultdict(list)
        trainer = Trainer()
        trainer.metrics["loss"].append(watch(torch.randn(2)))
        """,
        ('trainer.metrics["loss"][…]', "instance attribute", "defaultdict", 1),
    ),
    "set in a module": (
        """
        import torch
        seen = {watch(torch.randn(2))}
        """,
        ("seen[…]", "module global", "set", 1),
    ),
    "tuple as a key": (
        """
        import torch
        cache = {(3, "train"): watch(torch.randn(2))}
        """,
        ('cache[3, "train"]', "module global", "dict", 1),
    ),
    "plain variable": (
        """
        import torch
        best = watch(torch.randn(2))
        """,
        ("best", "module global", None, None),
    ),
    "attribute": (
        """
        import torch
        class Agent: pass
        agent = Agent()
        agent.last = watch(torch.randn(2))
        """,
        ("agent.last", "instance attribute", None, None),
    ),
    "slots": (
        """
        import torch
        class Node:
            __slots__ = ("value", "next")
        node = Node()
        node.value = watch(torch.randn(2))
        """,
        ("node.value", "instance attribute", None, None),
    ),
    "named tuple": (
        """
        import torch
        from collections import namedtuple
        Step = namedtuple("Step", "state reward")
        steps = [Step(watch(torch.randn(2)), 1.0)]
        """,
        ("steps[…].state", "module global", "list", 1),
    ),
    "dataclass": (
        """
        import torch
        from dataclasses import dataclass, field
        @dataclass
        class Memory:
            rows: list = field(default_factory=list)
        memory = Memory()
        memory.rows.append(watch(torch.randn(2)))
        """,
        ("memory.rows[…]", "instance attribute", "list", 1),
    ),
    "class attribute": (
        """
        import torch
        class Model:
            cache = {}
        Model.cache["a"] = watch(torch.randn(2))
        """,
        ('Model.cache["a"]', "class attribute", "dict", 1),
    ),
    "closure": (
        """
        import torch
        def make_step():
            cache = []
            def step(x):
                cache.append(watch(x * 2))
            return step
        step = make_step()
        step(torch.randn(2))
        """,
        ("cache[…], closure variable of make_step()", "closure", "list", 1),
    ),
    "default argument": (
        """
        import torch
        def remember(x, seen=[]):
            seen.append(watch(x * 2))
        remember(torch.randn(2))
        """,
        ("seen[…], default argument of remember()", "default argument", "list", 1),
    ),
    "keyword-only default": (
        """
        import torch
        def remember(x, *, seen=[]):
            seen.append(watch(x * 2))
        remember(torch.randn(2))
        """,
        ("seen[…], default argument of remember()", "default argument", "list", 1),
    ),
    "function attribute": (
        """
        import torch
        def step(x):
            step.history.append(watch(x * 2))
        step.history = []
        step(torch.randn(2))
        """,
        ("step.history[…]", "function attribute", "list", 1),
    ),
    "lru_cache": (
        """
        import functools, torch
        @functools.lru_cache(maxsize=32)
        def embed(token):
            return watch(torch.randn(4))
        embed(1), embed(2)
        """,
        ("functools.lru_cache of embed()", "lru_cache", "_lru_cache_wrapper", 2),
    ),
    "lru_cache of a method": (
        """
        import functools, torch
        class Encoder:
            @functools.cache
            def encode(self, token):
                return watch(torch.randn(4))
        Encoder().encode(1)
        """,
        ("functools.lru_cache of Encoder.encode()", "lru_cache", "_lru_cache_wrapper", 1),
    ),
    "lru_cache keyed by a tensor": (
        """
        import functools, torch
        @functools.lru_cache
        def norm(x):
            return 1.0
        norm(watch(torch.randn(4)))
        """,
        ("functools.lru_cache of norm()", "lru_cache", "_lru_cache_wrapper", 1),
    ),
    "cached_property": (
        """
        import functools, torch
        class Dataset:
            @functools.cached_property
            def table(self):
                return watch(torch.randn(4))
        dataset = Dataset()
        dataset.table
        """,
        ("dataset.table", "instance attribute", None, None),
    ),
    "forward hook": (
        """
        import torch
        from torch import nn
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.encoder = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
            def forward(self, x):
                return self.encoder(x)
        def spy(module):
            features = []
            module.register_forward_hook(lambda m, i, o: features.append(watch(o.detach())))
        model = Net()
        spy(model.encoder[0])
        model(torch.randn(1, 2))
        """,
        ("forward hook of model.encoder[0]: features[…], closure variable of spy()", "hook", "list", 1),
    ),
    "forward hook that is a method": (
        """
        import torch
        from torch import nn
        class Recorder:
            def __init__(self, module):
                self.outputs = []
                module.register_forward_hook(self.save)
            def save(self, module, inputs, output):
                self.outputs.append(watch(output.detach()))
        model = nn.Linear(2, 2)
        Recorder(model)
        model(torch.randn(1, 2))
        """,
        ("forward hook of model: Recorder.outputs[…]", "hook", "list", 1),
    ),
    "tensor hook": (
        """
        import torch
        w = torch.ones(2, requires_grad=True)
        def spy():
            gradients = [watch(torch.randn(2))]
            w.register_hook(lambda g: gradients.append(g) and None)
        spy()
        """,
        ("hook of w: gradients[…], closure variable of spy()", "hook", "list", 1),
    ),
    "module attribute": (
        """
        import torch
        from torch import nn
        class Net(nn.Module):
            def forward(self, x):
                self.last_input = watch(x * 2)
                return x
        model = nn.Sequential(Net())
        model(torch.randn(2))
        """,
        ("model[0].last_input", "instance attribute", None, None),
    ),
    "buffer": (
        """
        import torch
        from torch import nn
        model = nn.Module()
        model.register_buffer("table", watch(torch.randn(2)))
        """,
        ("model.table", "instance attribute", None, None),
    ),
    "gradient": (
        """
        import torch
        from torch import nn
        model = nn.Linear(2, 2, bias=False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.randn(1, 2)).sum().backward()
        watch(model.weight.grad)
        """,
        ("model.weight.grad", "instance attribute", None, None),
    ),
    "optimizer state": (
        """
        import torch
        from torch import nn
        model = nn.Linear(2, 2, bias=False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        model(torch.randn(1, 2)).sum().backward()
        optimizer.step()
        watch(optimizer.state[model.weight]["momentum_buffer"])
        """,
        ('optimizer.state[…]["momentum_buffer"]', "optimizer state", "defaultdict", 1),
    ),
    "generator": (
        """
        import torch
        def batches():
            while True:
                batch = watch(torch.randn(2))
                yield batch.sum().item()
        loader = batches()
        next(loader)
        """,
        ("batch in generator batches()", "generator", None, None),
    ),
    "coroutine": (
        """
        import torch, types
        @types.coroutine
        def pause():
            yield
        async def serve():
            cache = [watch(torch.randn(2))]
            await pause()
        task = serve()
        task.send(None)
        """,
        ("cache[…] in coroutine serve()", "coroutine", "list", 1),
    ),
    "thread-local": (
        """
        import threading, torch
        local = threading.local()
        local.scratch = watch(torch.randn(2))
        """,
        ("local.scratch", "thread-local", None, None),
    ),
    "context variable": (
        """
        import contextvars, torch
        current = contextvars.ContextVar("current_batch")
        token = current.set([watch(torch.randn(2))])
        """,
        ("current_batch[…]", "context variable", "list", 1),
    ),
    "partial": (
        """
        import functools, torch
        step = functools.partial(print, watch(torch.randn(2)))
        """,
        ("step.args[…]", "module global", "partial", None),
    ),
    "bound method": (
        """
        import torch
        class Stage:
            def __init__(self):
                self.kept = watch(torch.randn(2))
            def run(self): pass
        callbacks = [Stage().run]
        """,
        ("callbacks[…].kept", "instance attribute", None, None),
    ),
    "exception kept": (
        """
        import torch
        class Server:
            def handle(self):
                try:
                    self.infer()
                except ValueError as error:
                    self.error = error
            def infer(self):
                activations = watch(torch.randn(2))
                raise ValueError("bad request")
        server = Server()
        server.handle()
        """,
        ("activations in infer(), kept by server.error.__traceback__", "traceback", None, None),
    ),
    "numpy array over a tensor": (
        """
        import torch
        frames = [watch(torch.randn(2)).numpy()]
        """,
        ("frames[…]", "module global", "list", 1),
    ),
    "numpy array of objects": (
        """
        import numpy, torch
        table = numpy.empty(2, dtype=object)
        table[0] = watch(torch.randn(2))
        """,
        ("table[…]", "module global", "ndarray", None),
    ),
    "storage": (
        """
        import torch
        storages = [watch(torch.randn(2)).untyped_storage()]
        """,
        ("storages[…]", "module global", "list", 1),
    ),
    "view": (
        """
        import torch
        rows = [watch(torch.randn(4, 4))[0]]
        """,
        ("rows[…]", "module global", "list", 1),
    ),
    "weak keys with values that refer to them": (
        """
        import torch, weakref
        class Key: pass
        key = Key()
        extras = weakref.WeakKeyDictionary()
        extras[key] = watch(torch.randn(2))
        """,
        ("extras[…]", "module global", "WeakKeyDictionary", 1),
    ),
    "queue": (
        """
        import queue, torch
        pending = queue.Queue()
        pending.put(watch(torch.randn(2)))
        """,
        ("pending[…]", "module global", "Queue", 1),
    ),
    "graph of a loss in a list": (
        """
        import torch
        from torch import nn
        model = nn.Linear(4, 4)
        losses = []
        def step():
            hidden = torch.relu(model(torch.randn(2, 4)))
            losses.append((watch(hidden) ** 2).mean())
        step()
        step()
        """,
        ("losses[…]", "module global", "list", 2),
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_holder_is_named_as_its_user_would_write_it(program, way):
    source, (path, root, container, length) = WAYS[way]
    holder = program(source).holder()
    assert (holder.path, holder.root, holder.container, holder.length) == (path, root, container, length)


def test_a_local_list_of_a_running_function_is_named(program):
    holder = program("""
        import torch
        def train():
            history = []
            for _ in range(3):
                history.append(watch(torch.randn(2)))
            ask()
        train()
        """).holder()
    assert (holder.path, holder.root, holder.owner, holder.line) == ("history[…]", "frame local", "train", 7)


def test_an_attribute_of_self_is_named_so_while_a_method_runs(program):
    holder = program("""
        import torch
        class Trainer:
            def fit(self):
                self.outputs = [watch(torch.randn(2))]
                ask()
        def main():
            Trainer().fit()
        main()
        """).holder()
    assert (holder.path, holder.root, holder.owner) == ("self.outputs[…]", "instance attribute", "Trainer")


def test_a_local_of_another_thread_is_named_with_the_thread(program):
    holder = program("""
        import threading, torch
        ready, done = threading.Event(), threading.Event()
        def work():
            cache = [watch(torch.randn(2))]
            ready.set()
            done.wait()
        worker = threading.Thread(target=work, name="worker")
        worker.start()
        ready.wait()
        ask()
        done.set()
        worker.join()
        """).holder()
    assert (holder.path, holder.root) == ("cache[…] in thread 'worker'", "thread")


def test_the_generator_of_a_running_loop_is_found_though_no_name_leads_to_it(program):
    holder = program("""
        import torch
        def batches():
            batch = watch(torch.randn(2))
            yield 1
        def train():
            for _ in batches():
                ask()
        train()
        """).holder()
    assert (holder.path, holder.root) == ("batch in generator batches()", "generator")


def test_only_what_a_graph_alone_holds_is_said_to_be_held_by_it(program):
    run = program("""
        import torch
        w = torch.ones(4, requires_grad=True)
        outputs, losses = [], []
        def step():
            hidden = torch.exp(w * 2)
            losses.append(watch(hidden).sum())
            output = torch.exp(w * 3)
            outputs.append(watch(output))
            losses.append(output.sum())
        step()
        """)
    held = {holder.path: holder.held_by_graph for holder in run.holders()}
    assert held == {"losses[…]": True, "outputs[…]": False}


def test_a_container_is_preferred_to_the_variable_of_the_last_step(program):
    holder = program("""
        import torch
        history = []
        for _ in range(2):
            x = watch(torch.randn(2))
            history.append(x)
        """).holder()
    assert holder.path == "history[…]"


def test_the_list_of_losses_is_preferred_to_the_variable_of_the_last_loss(program):
    holder = program("""
        import torch
        w = torch.ones(4, requires_grad=True)
        losses = []
        def forward():
            return watch(torch.exp(w)).sum()
        for _ in range(2):
            loss = forward()
            losses.append(loss)
        """).holder()
    assert holder.path == "losses[…]"


def test_a_limit_is_told(program):
    source, _ = WAYS["deque with a limit"]
    assert program(source).holder().maxlen == 7
    source, _ = WAYS["lru_cache"]
    assert program(source).holder().maxlen == 32


def test_a_long_path_begins_at_the_last_object_of_the_users(program):
    holder = program("""
        import torch
        class Part:
            def __init__(self, **parts): vars(self).update(parts)
        app = Part(fleet=Part(robots=[Part(arm=Part(driver=Part(log=[watch(torch.randn(2))])))]))
        """).holder()
    assert (holder.path, holder.owner) == ("Part.log[…]", "Part")
    assert holder.chain[0].startswith("module global app")


def test_the_place_of_the_owner_is_told(program):
    source, _ = WAYS["closure"]
    holder = program(source).holder()
    assert holder.file.endswith("train.py")
    assert (holder.owner, holder.line) == ("step", 5)
