"""What runs once per step, and what does not."""

from __future__ import annotations

import ast

import pytest


def is_hot(module, call):
    return module.hot(call) is not None


CASES = {
    "loaders": """
        def train(train_loader, val_dl, loader, things):
            here()
            for epoch in range(3):
                here()
                for x, y in train_loader:
                    here()  # hot
                for i, batch in enumerate(val_dl):
                    here()  # hot
                for batch in tqdm(loader, total=3):
                    here()  # hot
                for a, b in zip(loader, other):
                    here()  # hot
                else:
                    here()
            for thing in things:
                here()
            for batch in DataLoader(here()):
                here()  # hot
    """,
    "counted steps": """
        def train(model, optimizer, loss_fn, args):
            for step in range(args.max_steps):
                here()  # hot
                loss_fn(model(x)).backward()
            for i in range(1000):
                here()  # hot
                optimizer.step()
            for i in range(3):
                here()
                model(x)
            for i in range(n):
                here()
            for step in range(num_steps):
                here()
                print(step)
            for epoch in range(epochs):
                here()  # hot
                loss = model(x)
                loss.backward()
                optimizer.step()
            for layer in range(n_layers):
                here()
                model(x)
            for image in images:
                here()  # hot
                out = model(image)
            for lr in (0.1, 0.01):
                here()
                loss.backward()
    """,
    "collecting around updates": """
        def train(collector, agent, cfg, num_updates):
            update = torch.compile(agent.update)
            for i in range(total_iter):
                data = torch.stack(next(collector))
                here()
                for j in range(num_updates):
                    losses = update(data)
                here()
    """,
    "loops that are no steps although they run modules": """
        import itertools
        def encode(self, x, models, batch_size):
            for i in range(self.num_levels):
                here()
                x = self.projections[i](x)
            for i in range(self.many):
                here()
                model = self.models[i]
                x = model(x)
            for model in models:
                here()
                loss = model(x)
                loss.backward()
            for row in range(batch_size):
                here()
                model(x)
            for batch_idx in range(x.shape[0]):
                here()
                x = x.mean(dim=1)
            for a, b in itertools.product([1], [2]):
                here()
                loss.backward()
            while x.dim() < 3:
                here()
                x = x.unsqueeze(0)
            while step < max_steps:
                here()  # hot
                x = torch.mm(x, x)
    """,
    "the loops of a forward are parts of it": """
        class Net(nn.Module):
            def forward(self, model, x):
                for i in range(n):
                    if i == 0:
                        here()  # hot
                    model(x)
    """,
    "epochs around functions that hold the steps": """
        def train_epoch(model, loader, optimizer):
            here()
            for x in loader:
                model(x).backward()
                optimizer.step()
        def main(model, loader, optimizer):
            for epoch in range(epochs):
                here()
                train_epoch(model, loader, optimizer)
    """,
    "steps around micro-batches": """
        def train(model, optimizer):
            while True:
                here()  # hot
                for micro in range(accumulation):
                    here()  # hot
                    model(x).backward()
                optimizer.step()
                if done:
                    break
    """,
    "endless loops": """
        def serve(model: nn.Module, queue):
            while True:
                here()  # hot
                x = queue.get()
                y = model(x)
        def control(camera):
            while running:
                here()  # hot
                frame = torch.from_numpy(camera.read()).mean()
        def draw(limit):
            while True:
                here()
                if abs(torch.randn(1).item()) < limit:
                    break
        def wait(queue):
            while True:
                here()
                queue.get()
        def never(model):
            while False:
                here()
                model(x)
    """,
    "modules": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                here()
            def forward(self, x):
                here()  # hot
                def inner(y):
                    here()  # hot
                    return y
                return self.helper(inner(x))
            def helper(self, x):
                here()  # hot
                if self.debug:
                    self.show(x)
                return torch.utils.checkpoint.checkpoint(self.block, x)
            def block(self, x):
                here()  # hot
            def show(self, x):
                here()
            def unused(self, x):
                here()
        class Other:
            def forward(self, x):
                here()
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                here()  # hot
            @staticmethod
            def backward(ctx, g):
                here()  # hot
    """,
    "lightning": """
        import lightning as L
        class Lit(L.LightningModule):
            def training_step(self, batch, i):
                here()  # hot
            def configure_optimizers(self):
                here()
            def on_train_epoch_end(self):
                here()
    """,
    "trainers": """
        from transformers import Trainer
        class Mine(Trainer):
            def compute_loss(self, model, inputs):
                here()  # hot
            def save_model(self):
                here()
        class Loop:
            def __init__(self, loader):
                self.loader = loader
            def fit(self):
                for batch in self.loader:
                    self.step(batch)
            def step(self, batch):
                here()  # hot
                self.update()
            def update(self):
                here()  # hot
        class Agent:
            def learn(self):
                here()  # hot
        agent = Agent()
        for batch in loader:
            agent.learn()
    """,
    "handlers": """
        from fastapi import FastAPI
        app = FastAPI()
        model = torch.load("m.pt")
        @app.post("/predict")
        def predict(request):
            here()  # hot
            return run(request)
        def run(request):
            here()  # hot
            return model(request.x)
        @app.get("/health")
        def health():
            here()
            return "ok"
        @app.on_event("startup")
        def load():
            here()
            model(torch.ones(1))
    """,
    "functions that hot code calls": """
        def a():
            here()  # hot
            b()
        def b():
            here()  # hot
            c()
        def c():
            here()  # hot
            d()
        def d():
            here()  # hot
            e()
        def e():
            here()
        def recursive(n):
            here()
            return recursive(n - 1)
        def closure():
            here()  # hot
        def shadow():
            here()
        def main(loader, optimizer, shadow):
            for x in loader:
                a()
                optimizer.step(closure)
                shadow()
    """,
    "set-up code": """
        here()
        data = [here() for _ in range(1000)]
        for path in paths:
            here()
            torch.load(path)
        def collate(batch):
            here()
            return torch.stack(batch)
        for fold in range(5):
            here()
            model = nn.Linear(1, 1)
            model(x)
        if __name__ == "__main__":
            here()
    """,
    "defaults and decorators run once": """
        class Net(nn.Module):
            def forward(self, x, y=here()):
                @wrap(here())  # hot
                def inner(z=here()):  # hot
                    pass
                return x
    """,
}


@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_hot_places(expect_lines, text):
    expect_lines(text, "hot", is_hot)


@pytest.mark.parametrize("path", ["tests/test_train.py", "test_train.py", "pkg/test/util.py", "conftest.py"])
def test_tests_are_not_hot(parse_torch, path):
    module = parse_torch("for x in loader:\n    here()", path)
    assert module.hot(list(module.nodes(ast.Call))[-1]) is None
    assert module.region(module.tree.body[-1]).test


def test_a_project_in_a_folder_named_test_is_no_test(parse_torch):
    module = parse_torch("for x in loader:\n    here()", "/home/me/test/a/b/c/train.py")
    assert module.hot(list(module.nodes(ast.Call))[-1]) is not None


def test_reasons_name_the_loop_or_the_function(parse_torch):
    module = parse_torch(
        """
        class Net(nn.Module):
            def forward(self, x):
                for row in x.detach():
                    here()
                return self.inner(x)
            def inner(self, x):
                return self.innermost(x)
            def innermost(self, x):
                here()
        def train(loader):
            for x in loader:
                here()
        """
    )
    here = [call for call in module.nodes(ast.Call) if getattr(call.func, "id", "") == "here"]
    rows, innermost, step = [module.hot(call) for call in here]
    assert (rows.why, rows.per) == ("the loop over the elements of a batch in line 11", "batch-element")
    assert (innermost.why, innermost.per) == ("called from the forward of class Net", "layer")
    assert (step.why, step.per, step.loop.lineno) == ("the loop over loader in line 19", "step", 19)
    assert step.function.name == "train"


def test_decoding_is_told_apart_from_training_and_evaluation_from_both(parse_torch):
    module = parse_torch(
        """
        class Net(nn.Module):
            def training_step(self, batch, i):
                here()
            def validation_step(self, batch, i):
                here()
        def write(model: nn.Module, text, steps):
            for step in range(steps):
                text = model(text)
                here()
        def embed(model: nn.Module, data, size):
            for start in range(0, len(data), size):
                model(data[start : start + size])
                here()
        """
    )
    here = [call for call in module.nodes(ast.Call) if getattr(call.func, "id", "") == "here"]
    assert [module.hot(call).within for call in here] == ["step", "layer", "round", "step"]


def test_what_comes_after_trouble_in_every_case_is_no_step(parse_torch):
    module = parse_torch(
        """
        def train(loader, optimizer):
            for x in loader:
                optimizer.step()
                shrink(x)
        def shrink(x):
            if x.size == 1:
                raise RuntimeError("no memory left")
            else:
                warnings.warn("no memory left: half of the batch is tried")
            here()
        """
    )
    (here,) = [call for call in module.nodes(ast.Call) if getattr(call.func, "id", "") == "here"]
    assert module.is_rare(here)


def test_files_without_torch_have_no_hot_loops(parse):
    module = parse("for x in loader:\n    optimizer.step()\nwhile True:\n    model(x)\n")
    assert [module.hot(call) for call in module.nodes(ast.Call)] == [None, None]
