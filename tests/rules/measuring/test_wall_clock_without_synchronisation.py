"""PYR001: clocks read while a device is working."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

HEAD = """
import time
import timeit
from contextlib import contextmanager
import torch
from torch import nn

device = torch.device("cuda")
model = nn.Linear(8, 8).to(device)
x = torch.randn(4, 8, device=device)
"""

FIRES = {
    "one call": """
start = time.time()
y = model(x)
took = time.time() - start  # <-
""",
    "a loop": """
start = time.perf_counter()
for _ in range(100):
    y = model(x)
print((time.perf_counter() - start) / 100)  # <-
""",
    "two names": """
t0 = time.perf_counter_ns()
y = model(x)
t1 = time.perf_counter_ns()  # <-
print(t1 - t0)
""",
    "a synchronisation after the reading": """
start = time.time()
y = model(x)
end = time.time()  # <-
torch.cuda.synchronize()
print(end - start)
""",
    "operators without a model": """
start = time.monotonic()
y = torch.mm(x, x.t())
print(time.monotonic() - start)  # <-
""",
    "through a function of the file": """
def forward():
    return model(x)

start = time.time()
forward()
print(time.time() - start)  # <-
""",
    "a context manager": """
@contextmanager
def timed(name):
    torch.cuda.synchronize()
    start = time.perf_counter()
    try:
        yield
    finally:
        print(name, time.perf_counter() - start)  # <-

with timed("forward"), torch.no_grad():
    y = model(x)
with timed("again"):
    y = model(x)
""",
    "a class": """
class Timed:
    def __enter__(self):
        self.start = time.perf_counter()

    def __exit__(self, *_):
        self.took = time.perf_counter() - self.start  # <-

with Timed():
    y = torch.mm(x, x.t())
""",
    "timeit": """
print(timeit.timeit(lambda: model(x), number=100))  # <-
""",
}

SILENT = {
    "synchronised": """
start = time.time()
y = model(x)
torch.cuda.synchronize()
print(time.time() - start)
""",
    "synchronised in a function of the file": """
def step():
    y = model(x)
    torch.cuda.synchronize()

start = time.time()
step()
print(time.time() - start)
""",
    "reading a value waits": """
start = time.time()
loss = model(x).sum().item()
print(time.time() - start)
""",
    "copying to the host waits": """
start = time.time()
y = model(x).cpu()
print(time.time() - start)
""",
    "a function of its own that waits": """
def sync_all():
    ...

start = time.time()
y = model(x)
sync_all()
print(time.time() - start)
""",
    "a function from elsewhere may wait": """
from metrics import evaluate
start = time.time()
y = model(x)
evaluate(y)
print(time.time() - start)
""",
    "a model is only made ready": """
start = time.time()
model = accelerator.prepare_model(model)
print(time.time() - start)
""",
    "nothing computes": """
start = time.time()
open("a.txt").read()
print(time.time() - start)
""",
    "a context manager that waits": """
@contextmanager
def timed():
    start = time.perf_counter()
    yield
    if x.is_cuda:
        torch.cuda.synchronize()
    print(time.perf_counter() - start)

with timed():
    y = model(x)
""",
    "a context manager that calls what may wait": """
@contextmanager
def timed(finish):
    start = time.perf_counter()
    yield
    finish()
    print(time.perf_counter() - start)

with timed(torch.cuda.synchronize):
    y = model(x)
""",
    "a class that waits": """
class Timed:
    def __enter__(self):
        self.start = time.perf_counter()

    def __exit__(self, *_):
        torch.cuda.synchronize()
        self.took = time.perf_counter() - self.start

with Timed():
    y = model(x)
""",
    "the block of a context manager waits": """
@contextmanager
def timed():
    start = time.perf_counter()
    yield
    print(time.perf_counter() - start)

with timed():
    loss = model(x).sum().item()
with timed():
    open("a.txt").read()
""",
    "an epoch": """
from torch.utils.data import DataLoader
loader = DataLoader([x])
start = time.time()
for batch in loader:
    model(batch).sum().backward()
print(time.time() - start)
""",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_fires_at_the_second_reading(
    text: str, lines: Callable[..., list[int]], marked: Callable[[str], list[int]]
) -> None:
    assert lines("PYR001", HEAD + text) == marked(HEAD + text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_is_silent(text: str, lines: Callable[..., list[int]]) -> None:
    assert lines("PYR001", HEAD + text) == []


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_is_silent_without_a_device(text: str, lines: Callable[..., list[int]]) -> None:
    assert lines("PYR001", HEAD.replace('"cuda"', '"cpu"') + text) == []


def test_finds_its_example_and_not_the_replacement(speaks_as_documented: Callable[[str], None]) -> None:
    speaks_as_documented("PYR001")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_synchronised_time_is_longer() -> None:
    import time

    x = torch.randn(4096, 4096, device="cuda")
    times = []
    for waits in (True, False, True):  # the first warms up
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(20):
            torch.mm(x, x)
        if waits:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    assert times[2] > 2 * times[1]
