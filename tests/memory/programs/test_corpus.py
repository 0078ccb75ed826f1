"""What the corpus says of its programs is true, by a count of live tensor bytes that knows nothing of Pyrometer."""

from __future__ import annotations

import gc
import importlib.util
import threading
import weakref
from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

spec = importlib.util.spec_from_file_location("corpus", Path(__file__).with_name("corpus.py"))
corpus = importlib.util.module_from_spec(spec)
spec.loader.exec_module(corpus)

PROGRAMS = corpus.load_all()
BLOCK = 50  # longer than any period in the corpus
WARM_UP = 30


def sampled(programs):
    """Every eighth at once; the others when the corpus is looked through."""
    return [
        program if number % 8 == 0 else pytest.param(program, marks=pytest.mark.exhaustive)
        for number, program in enumerate(programs)
    ]


class LiveBytes:
    """Bytes of the storages that operators of any thread have returned and that still live."""

    def __init__(self):
        self.total = 0
        self.storages = {}

    def see(self, tensor):
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.storages and self.storages[key]() is not None:
            return
        num_bytes = storage.nbytes()
        self.total += num_bytes

        def died(reference):
            self.total -= num_bytes
            if self.storages.get(key) is reference:
                del self.storages[key]

        self.storages[key] = weakref.ref(storage, died)


class Counting(TorchDispatchMode):
    def __init__(self, live):
        super().__init__()
        self.live = live

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.live.see(leaf)
        return result


@pytest.fixture(scope="module", autouse=True)
def _unfrozen_in_the_end():
    # The first optimizer imports the compiler: its objects are to be frozen too.
    torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))]).step()
    yield
    gc.unfreeze()


@pytest.fixture
def live(monkeypatch):
    """Live bytes, counted in this thread and in those that are started.

    Objects that were there before are out of gc's sight, so that each of some ten thousand collections is short.
    """
    counted = LiveBytes()
    run = threading.Thread.run

    def run_counted(thread):
        with Counting(counted):
            run(thread)

    monkeypatch.setattr(threading.Thread, "run", run_counted)
    gc.collect()
    gc.freeze()
    with Counting(counted):
        yield counted


def lowest(step, live, num_steps, collect):
    """The least number of live bytes after any of so many steps."""
    after = []
    for _ in range(num_steps):
        step()
        if collect:
            gc.collect()
        after.append(live.total)
    return min(after)


def graph_nodes():
    """Autograd nodes that are reachable from tensors that Python sees."""
    tensors = [thing for thing in gc.get_objects() if issubclass(type(thing), torch.Tensor)]
    todo = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
    seen = set()
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            todo.extend(following for following, _ in node.next_functions if following is not None)
    return len(seen)


@pytest.fixture(autouse=True)
def _one_thread():
    """The steps are too small for more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("program", sampled(p for p in PROGRAMS if p.leaks), ids=repr)
def test_live_bytes_of_a_leaking_program_grow_at_the_rate_that_is_said(program, live):
    collect = not program.expected.get("freed_by_gc")
    with program.running() as step:
        lowest(step, live, WARM_UP, collect)
        nodes = graph_nodes()
        first = lowest(step, live, BLOCK, collect)
        second = lowest(step, live, BLOCK, collect)
        more_nodes = graph_nodes() - nodes
        del step
    rate = (second - first) / BLOCK
    said = program.expected["bytes_per_step"]
    if said is None:
        assert rate > 0
    else:
        assert rate == pytest.approx(said, rel=0.2)
    assert (more_nodes > BLOCK / 10) == program.expected["graph"]


@pytest.mark.parametrize("program", sampled(p for p in PROGRAMS if not p.leaks), ids=repr)
def test_live_bytes_of_a_clean_program_come_back_to_the_same_floor(program, live):
    with program.running() as step:
        lowest(step, live, WARM_UP, collect=True)
        first = lowest(step, live, BLOCK, collect=True)
        assert lowest(step, live, BLOCK, collect=True) <= first
        del step


def test_what_only_gc_would_free_is_freed_by_it(live):
    program = next(p for p in PROGRAMS if p.expected.get("freed_by_gc"))
    with program.running() as step:
        lowest(step, live, 10, collect=True)
        assert lowest(step, live, 10, collect=True) == lowest(step, live, 10, collect=True)
        del step


def test_there_are_enough_programs_of_either_kind():
    leaking = [program for program in PROGRAMS if program.leaks]
    assert len(leaking) >= 40
    assert len(PROGRAMS) - len(leaking) >= 40


def test_expectations_fit_the_text_of_the_program():
    for program in PROGRAMS:
        assert program.path.parent.name == ("leaking" if program.leaks else "clean"), program
        assert program.expected["verdict"] in {"leak", "growing cache", "allocator warm-up", "stable"}, (
            program
        )
        assert program.expected["note"], program
        for text in program.expected.get("line_contains", ()):
            assert any(text in line for line in program.source.splitlines()), (program, text)


def test_a_holder_is_a_name_that_the_program_or_a_cycle_uses():
    for program in PROGRAMS:
        if program.leaks:
            assert any(name in program.source for name in program.expected["holder"]), program


def test_programs_are_of_the_size_that_users_show():
    for program in PROGRAMS:
        assert 15 <= len(program.source.splitlines()) <= 60, program
