"""What torch.compile sees: graphs, breaks, recompiles, warnings, in several ways of using it."""
import sys

import torch

backend = sys.argv[1]
torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x):
        x = self.a(x).relu()
        if broken:
            torch._dynamo.graph_break()
        return self.b(x)


def train(model, step):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in (4, 4, 6, 6, 8):
        loss = step(model, torch.randn(batch, 8))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"{loss.item():.6f}")


def report(*more):
    counters = torch._dynamo.utils.counters
    for name in (*more, "stats", "graph_break", "unimplemented", "inline_call", "aot_autograd"):
        print(name, sorted(counters[name].items()))
    print(torch._dynamo.utils.compile_times(repr="csv")[0])
    torch._dynamo.reset()
    counters.clear()


for broken in (False, True):
    train(torch.compile(Net(), backend=backend), lambda model, x: model(x).square().mean())
    report("frames")

broken = False
model = Net()
model.compile(backend=backend)
train(model, lambda model, x: model(x).square().mean())
report("frames")


@torch.compile(backend=backend)
def function(model, x):
    return model(x).square().mean()


train(Net(), function)
report("frames")
broken = True
train(Net(), function)
report("frames")

hooked = Net()
hooked.a.register_forward_hook(lambda module, args, output: output * 2)
train(torch.compile(hooked, backend=backend), lambda model, x: model(x).square().mean())
report("frames")


@torch.compile(backend=backend)
def breaks_before_the_call(model, x):
    x = x + 1
    torch._dynamo.graph_break()
    return model(x).square().mean()


train(Net(), breaks_before_the_call)
report("frames")

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
compiled_step = torch.compile(optimizer.step, backend=backend)
for _ in range(3):
    model(torch.randn(4, 8)).square().mean().backward()
    compiled_step()
    optimizer.zero_grad()
print(model.a.weight.sum())
report()
