"""What expressions are, at each point of a program."""

from __future__ import annotations

import ast

import pytest

CASES = {
    "factories and arithmetic": """
        x = torch.zeros(3)
        reveal(x)  # TENSOR cpu
        reveal(x * 2 + 1)  # TENSOR cpu
        reveal(-x)  # TENSOR cpu
        reveal(x > 0)  # TENSOR cpu
        reveal(x is None)  # HOST
        reveal(2 * 3)  # HOST
        reveal(x[0])  # TENSOR cpu
        reveal(torch.float16)  # HOST
        reveal(torch.linalg.norm(x))  # TENSOR cpu
    """,
    "factories make tensors of the host unless a device is named": """
        reveal(torch.rand([]))  # TENSOR cpu
        reveal(torch.rand([]) < args.drop)  # TENSOR cpu
        reveal(torch.tensor([2, 3]).prod())  # TENSOR cpu
        reveal(torch.zeros(3, device=x.device))  # TENSOR
        reveal(torch.zeros(3, **options))  # TENSOR
        reveal(torch.zeros(3).to(x.device))  # TENSOR
        reveal(torch.zeros(3).type_as(x))  # TENSOR
        reveal(torch.zeros(3) * model(x).relu())  # TENSOR graph
        reveal(torch.as_tensor(x))  # TENSOR
        reveal(torch.nn.Parameter(torch.zeros(3)))  # TENSOR
    """,
    "a default device is anywhere": """
        torch.set_default_device("cuda")
        reveal(torch.zeros(3))  # TENSOR
    """,
    "lists in lists": """
        rows = []
        for _ in range(3):
            rows.append([torch.relu(x)])
        for row in rows:
            reveal(row)  # TENSORS
            for part in row:
                reveal(part)  # TENSOR
    """,
    "devices": """
        x = torch.zeros(3, device="cuda")
        reveal(x)  # TENSOR accelerator
        reveal(x.cpu())  # TENSOR cpu
        reveal(x.to("cuda:1"))  # TENSOR accelerator
        reveal(x.cpu().to(device))  # TENSOR
        reveal(x.to(torch.float16))  # TENSOR accelerator
        reveal(x.cpu() + 1)  # TENSOR cpu
        reveal(x.cpu() > 0)  # TENSOR cpu
        reveal(torch.zeros_like(x))  # TENSOR accelerator
        reveal(torch.from_numpy(a))  # TENSOR cpu
        reveal(torch.ones(2, device=torch.device("cpu")))  # TENSOR cpu
    """,
    "graphs begin at parameters and end at detach": """
        model = nn.Linear(3, 4)
        out = model(torch.zeros(3))
        reveal(model)  # MODULE
        reveal(out)  # TENSOR graph
        reveal(out.detach())  # TENSOR
        reveal(out.data)  # TENSOR
        reveal(out.cpu())  # TENSOR graph cpu
        reveal(out.argmax(1))  # TENSOR
        reveal(out == 1)  # TENSOR
        reveal((out ** 2).mean())  # TENSOR graph
        reveal(F.cross_entropy(out, y))  # TENSOR graph
        reveal(F.relu(torch.ones(2)))  # TENSOR cpu
        reveal(model.weight)  # TENSOR
        reveal(model.weight * 2)  # TENSOR graph
        w = torch.zeros(3, requires_grad=True)
        reveal(w)  # TENSOR
        reveal(w.sum())  # TENSOR graph
        reveal(nn.CrossEntropyLoss()(out, y))  # TENSOR graph
        reveal(nn.ReLU()(torch.ones(2)))  # TENSOR
    """,
    "no graph is built under no_grad": """
        model = nn.Linear(3, 4)
        old = model(x)
        with torch.no_grad():
            reveal(model(x))  # TENSOR
            reveal(old)  # TENSOR graph
            reveal(old * 2)  # TENSOR
        with torch.enable_grad():
            reveal(model(x))  # TENSOR graph
        with torch.set_grad_enabled(False):
            reveal(model(x))  # TENSOR
        with torch.set_grad_enabled(train):
            reveal(model(x))  # TENSOR graph
        @torch.inference_mode()
        def run(model: nn.Module):
            reveal(model(x))  # TENSOR
        @torch.no_grad
        def again(model: nn.Module):
            reveal(model(x))  # TENSOR
        def plain(model: nn.Module):
            reveal(model(x))  # TENSOR graph
    """,
    "tensor methods": """
        x = torch.zeros(3)
        reveal(x.item())  # HOST
        reveal(x.tolist())  # HOST
        reveal(float(x))  # HOST
        reveal(x.numpy())  # ARRAY
        reveal(x.numpy() + 1)  # ARRAY
        reveal(x.shape)  # HOST
        reveal(x.shape[0])  # HOST
        reveal(x.size(0) * 2)  # HOST
        reveal(x.T)  # TENSOR cpu
        reveal(x.add_(1).random_())  # TENSOR cpu
        reveal(x.max())  # TENSOR cpu
        reveal(x.max(1))  # TENSORS cpu
        reveal(x.max(dim=1)[0])  # TENSOR cpu
        reveal(x.topk(3))  # TENSORS cpu
        reveal(x.split(2)[0])  # TENSOR cpu
        reveal(torch.max(x, 1))  # TENSORS cpu
        reveal(torch.max(x, x))  # TENSOR cpu
        reveal(torch.maximum(x, x))  # TENSOR cpu
        reveal(x.unheard_of())  # UNKNOWN
        reveal(x.to_sparse)  # UNKNOWN
        reveal(len(x))  # HOST
        reveal(sum(x))  # TENSOR
        reveal(max(1, 2))  # HOST
    """,
    "a file's own modules": """
        class Net(nn.Module):
            scale: Tensor
            def __init__(self, width, act=None):
                super().__init__()
                self.fc = nn.Linear(width, 4)
                self.layers = nn.ModuleList([nn.Linear(4, 4)])
                self.register_buffer("mean", torch.zeros(3))
                self.w = nn.Parameter(torch.ones(3))
                self.names = []
                self.width = width
                self.count = 0
                self.act = act or nn.ReLU()
            def forward(self, x, mask=None, flag=False):
                reveal(x)  # TENSOR
                reveal(mask)  # UNKNOWN
                reveal(flag)  # HOST
                h = self.fc(x)
                reveal(h)  # TENSOR graph
                reveal(self.fc)  # MODULE
                reveal(self.mean)  # TENSOR
                reveal(self.scale)  # TENSOR
                reveal(self.w * 2)  # TENSOR graph
                reveal(self.names)  # CONTAINER
                reveal(self.width)  # UNKNOWN
                reveal(self.count)  # UNKNOWN
                reveal(self.training)  # HOST
                self.count += h
                for layer in self.layers:
                    reveal(layer)  # MODULE
                    h = h + layer(h)
                for i, layer in enumerate(self.layers):
                    reveal(layer(h))  # TENSOR graph
                reveal(self.layers[0](h))  # TENSOR graph
                return h, x
            def step(self, x):
                reveal(self(x))  # TENSORS graph
                reveal(self.forward(x)[0])  # TENSOR graph
        class Deep(Net):
            def extra(self):
                reveal(self.fc)  # MODULE
        net = Net(3)
        reveal(net)  # MODULE
        reveal(net(torch.ones(3))[0])  # TENSOR graph
        reveal(net.fc.weight.grad)  # TENSOR
        reveal(Net)  # UNKNOWN
    """,
    "annotations": """
        from typing import Optional, List, Union
        def f(a: Tensor, b: "torch.Tensor", c: Optional[Tensor], d: List[Tensor], e: int, g: dict, h: Tensor | None,
              i: tuple[Tensor, int], j: Union[Tensor, int], k: nn.Module, l: DataLoader, *args: Tensor, n: np.ndarray,
              o: torch.optim.Optimizer, p: Unheard):
            reveal(a)  # TENSOR
            reveal(b)  # TENSOR
            reveal(c)  # TENSOR
            reveal(d)  # TENSORS
            reveal(d[0])  # TENSOR
            reveal(e)  # HOST
            reveal(g)  # CONTAINER
            reveal(h)  # TENSOR
            reveal(i[0])  # TENSOR
            reveal(i[1])  # HOST
            reveal(j)  # UNKNOWN
            reveal(k)  # MODULE
            reveal(l)  # LOADER
            reveal(args)  # TENSORS
            reveal(n)  # ARRAY
            reveal(o)  # OPTIMIZER
            reveal(p)  # UNKNOWN
            q: Tensor = something()
            reveal(q)  # TENSOR
    """,
    "loaders yield batches": """
        def train(train_loader, model):
            for images, labels, paths in train_loader:
                reveal(images)  # TENSOR cpu
                reveal(paths)  # UNKNOWN
                images = images.to(device)
                reveal(images)  # TENSOR
            for step, (x, y) in enumerate(tqdm(train_loader)):
                reveal(step)  # HOST
                reveal(x)  # TENSOR cpu
            for step, (x, y) in watched(train_loader):
                reveal(step)  # UNKNOWN
                reveal(x)  # UNKNOWN
            for step, batch in enumerate(train_loader):
                reveal(step)  # HOST
                reveal(batch)  # TENSORS cpu
                reveal(batch["input_ids"])  # TENSOR cpu
                reveal(batch["path"])  # UNKNOWN
                reveal(batch[0])  # TENSOR cpu
            x, y = next(iter(train_loader))
            reveal(x)  # TENSOR cpu
        loader = DataLoader(data, batch_size=4)
        reveal(loader)  # LOADER
        for a, b in zip(loader, loader):
            reveal(a)  # TENSORS cpu
    """,
    "known wrappers yield what they wrap": """
        from tqdm import tqdm
        for step, (x, y) in enumerate(tqdm(DataLoader(data), total=3)):
            reveal(step)  # HOST
            reveal(x)  # TENSOR cpu
        for i in range(3):
            reveal(i)  # HOST
        for k, v in {"a": torch.ones(1)}.items():
            reveal(k)  # HOST
            reveal(v)  # TENSOR
        for name, p in nn.Linear(1, 1).named_parameters():
            reveal(name)  # HOST
            reveal(p * 2)  # TENSOR graph
        for row in torch.zeros(3):
            reveal(row)  # TENSOR cpu
    """,
    "later uses say what earlier names are": """
        def train(batches):
            for batch in batches:
                loss = compute(batch)
                reveal(loss)  # TENSOR graph
                loss.backward()
        def score(output, target, k, scale):
            reveal(output)  # TENSOR
            reveal(target)  # UNKNOWN
            reveal(k)  # UNKNOWN
            _, best = output.topk(k, 1, True, True)
            reveal(best)  # TENSOR
            reveal(scale)  # UNKNOWN
            return scale * F.softmax(output, dim=-1)
        def pooled(hidden):
            reveal(hidden)  # TENSOR
            return hidden.mean(dim=1)
        def branch(flag):
            x = g() if flag else h()
            reveal(x)  # TENSOR
            x.detach()
        def shadowed():
            x = config()
            reveal(x)  # UNKNOWN
            x = x.tensor
            reveal(x)  # TENSOR
            return x.detach()
        def module(net):
            reveal(net)  # MODULE
            opt = torch.optim.SGD(net.parameters(), 0.1)
            reveal(opt)  # OPTIMIZER
            return net(torch.ones(3))
    """,
    "what takes no tensor is none": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)
            def forward(self, x, attention_mask, output_ids: int, config, scale):
                reveal(attention_mask)  # UNKNOWN
                reveal(output_ids)  # HOST
                reveal(config)  # UNKNOWN
                reveal(scale)  # UNKNOWN
                return scale * self.fc(x)
            def residual(self, x, y):
                reveal(y)  # TENSOR
                return y + self.fc(x)
    """,
    "branches": """
        def f(flag, x: Tensor):
            a = torch.ones(1) if flag else None
            reveal(a)  # TENSOR cpu
            if flag:
                b = torch.ones(1)
            else:
                b = 3
            reveal(b)  # UNKNOWN
            if flag:
                c = torch.ones(1)
            elif x:
                c = torch.zeros(1)
            else:
                raise ValueError
            reveal(c)  # TENSOR cpu
            d = None
            if flag:
                d = x
            reveal(d)  # TENSOR
            e = 1
            if flag:
                e = x
                return
            reveal(e)  # HOST
            try:
                g = torch.ones(1)
            except ValueError:
                g = 3
            reveal(g)  # UNKNOWN
            match flag:
                case 1:
                    h = torch.ones(1)
                case _:
                    h = torch.zeros(1)
            reveal(h)  # TENSOR cpu
    """,
    "isinstance": """
        def f(x, y, z):
            if isinstance(x, torch.Tensor):
                reveal(x)  # TENSOR
            else:
                reveal(x)  # UNKNOWN
            if torch.is_tensor(y) and flag:
                reveal(y)  # TENSOR
            if not isinstance(z, Tensor):
                reveal(z)  # UNKNOWN
                z = torch.tensor(z)
            reveal(z)  # TENSOR
        def g(x):
            assert isinstance(x, Tensor)
            reveal(x)  # TENSOR
        def h(x):
            if isinstance(x, (int, float)):
                reveal(x)  # HOST
            if isinstance(x, (int, Tensor)):
                reveal(x)  # UNKNOWN
    """,
    "loops": """
        model = nn.Linear(2, 2)
        total = 0
        history = []
        for x in torch.zeros(3):
            reveal(total)  # UNKNOWN
            total += model(x)
            reveal(total)  # TENSOR graph
            history.append(model(x))
        reveal(total)  # TENSOR graph
        reveal(history)  # TENSORS graph
        reveal(torch.stack(history))  # TENSOR graph
        n = 0
        while n < 3:
            n += 1
        reveal(n)  # HOST
        y = torch.ones(1)
        while True:
            y = y * 2
            if y.sum() > 3:
                break
        reveal(y)  # TENSOR cpu
    """,
    "containers": """
        a, b = torch.ones(1), 3
        reveal(a)  # TENSOR cpu
        reveal(b)  # HOST
        c, *rest = torch.ones(3).unbind()
        reveal(c)  # TENSOR cpu
        reveal([])  # CONTAINER
        reveal([a, a])  # TENSORS
        reveal([a, 3])  # CONTAINER
        reveal({"x": a})  # TENSORS
        reveal([t * 2 for t in [a, a]])  # TENSORS cpu
        reveal([t.item() for t in [a, a]])  # CONTAINER
        reveal([t.item() for t in [a, a]][0])  # HOST
        reveal(list(t for t in [a, a]))  # TENSORS cpu
        d = {}
        d["loss"] = a
        reveal(d)  # TENSORS cpu
        d["name"] = "x"
        reveal(d)  # CONTAINER
        reveal((lambda q: q)(a))  # UNKNOWN
        reveal(f"{a}")  # HOST
        reveal("%s" % a)  # HOST
        reveal(x := a)  # TENSOR cpu
    """,
    "functions of the file": """
        def loss_of(out, y):
            return F.cross_entropy(out, y)
        def accuracy(out, y):
            return (out.argmax(1) == y).float().mean()
        def number(out):
            return out.sum().item()
        def several(x: Tensor):
            return x, x.shape
        def recursive(x):
            return recursive(x)
        def passed(x):
            return x
        async def later():
            return torch.ones(1)
        def generator():
            yield torch.ones(1)
        def promise() -> Tensor:
            return elsewhere()
        out = nn.Linear(1, 1)(x)
        reveal(loss_of(out, y))  # TENSOR graph
        reveal(loss_of(torch.ones(2), y))  # TENSOR cpu
        reveal(accuracy(out, y))  # TENSOR
        reveal(number(out))  # HOST
        reveal(several(out)[0])  # TENSOR
        reveal(several(out)[1])  # HOST
        reveal(recursive(out))  # UNKNOWN
        reveal(passed(out))  # TENSOR graph
        reveal(passed(x=out))  # TENSOR graph
        reveal(passed(*out))  # UNKNOWN
        reveal(passed(3))  # HOST
        reveal(later())  # UNKNOWN
        reveal(generator())  # UNKNOWN
        reveal(promise())  # TENSOR
        with torch.no_grad():
            reveal(loss_of(nn.Linear(1, 1)(x), y))  # TENSOR
    """,
    "arguments that the file calls a function with": """
        def show(step, loss):
            reveal(loss)  # TENSOR graph
            reveal(step)  # HOST
            deeper(loss, 3)
        def deeper(value, n):
            reveal(value)  # TENSOR graph
        def both(value):
            reveal(value)  # UNKNOWN
        def agreed(value):
            reveal(value)  # TENSOR graph
            return agreed(value)
        def passed_on(value):
            reveal(value)  # UNKNOWN
        def starred(value):
            reveal(value)  # UNKNOWN
        class Loop:
            def log(self, loss):
                reveal(loss)  # TENSOR graph
            def run(self, model: nn.Module):
                self.log(model(torch.ones(1)))
        def main(model: nn.Module, optimizer):
            loss = model(torch.ones(1))
            show(1, loss)
            both(loss)
            both(3)
            agreed(value=loss)
            agreed(loss.mean())
            optimizer.step(passed_on)
            passed_on(loss)
            starred(*loss)
    """,
    "other scopes": """
        model = nn.Linear(1, 1)
        count = 0
        def f():
            reveal(model(x))  # TENSOR graph
            reveal(count)  # UNKNOWN
        def g():
            global count
            count = torch.ones(1)
        def outer(x: Tensor):
            y = x * 2
            def inner():
                reveal(y)  # TENSOR
            return inner
    """,
    "other objects": """
        from torch.cuda.amp import GradScaler
        reveal(GradScaler())  # SCALER
        reveal(torch.optim.AdamW(p))  # OPTIMIZER
        reveal(torch.optim.lr_scheduler.StepLR(o, 3))  # UNKNOWN
        reveal(torch.utils.data.TensorDataset(x))  # DATASET
        class Mine(torch.utils.data.Dataset):
            pass
        reveal(Mine())  # DATASET
        reveal(np.zeros(3))  # ARRAY
        reveal(torch.compile(nn.Linear(1, 1)))  # MODULE
        reveal(nn.Linear(1, 1).to("cuda").eval())  # MODULE
        reveal(nn.LSTM(1, 1)(x))  # TENSORS graph
        reveal(torch.nn.utils.clip_grad_norm_(p, 1))  # UNKNOWN
        reveal(elsewhere())  # UNKNOWN
    """,
}


@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_values(expect, text):
    expect(text)


def test_transformers_and_their_outputs(expect):
    expect(
        """
        from transformers import AutoModel, AutoTokenizer
        model = AutoModel.from_pretrained("x")
        tok = AutoTokenizer.from_pretrained("x")
        reveal(model)  # MODULE
        reveal(tok)  # UNKNOWN
        out = model(**tok("text"))
        reveal(out)  # TENSORS graph
        reveal(out.loss)  # TENSOR graph
        reveal(out.whatever)  # UNKNOWN
        """
    )


def test_names_say_nothing_in_files_without_torch(parse):
    module = parse("def f(model, loader):\n    for x, y in loader:\n        z = model(x)\n")
    assert all(module.value_of(name).kind.name == "UNKNOWN" for name in module.nodes(ast.Name))


def test_containers_within_containers_do_not_grow_without_end(parse_torch):
    module = parse_torch("t = (1,)\n" + "t = (t, t, t)\n" * 60)
    assert module.value_of(module.tree.body[-1].value).kind.name == "CONTAINER"
