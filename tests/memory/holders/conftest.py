"""Programs as users write them, and what of theirs is still alive afterwards."""

from __future__ import annotations

import gc
import itertools
import sys
import textwrap
import types
import weakref

import pytest
import torch

from pyrometer.memory.holders.find import find_holders

_numbers = itertools.count()
PATIENCE_S = 120
"""Far longer than any machine needs."""


class Program:
    """A module made of a source text; it may call `watch(tensor)` for tensors that should die, and `ask()` while it runs."""

    def __init__(self, folder):
        self.folder = folder
        self.name = f"train_{next(_numbers)}"
        self.storages = []
        self.asked = []

    def run(self, source):
        torch.manual_seed(0)
        file = self.folder / "train.py"
        file.write_text(textwrap.dedent(source), encoding="utf-8")
        module = types.ModuleType(self.name)
        module.__file__ = str(file)
        vars(module).update(watch=self.watch, ask=self.ask)
        sys.modules[self.name] = module
        exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), vars(module))
        return self

    def watch(self, tensor):
        self.storages.append(weakref.ref(tensor.untyped_storage()))
        return tensor

    def alive(self):
        return [storage for storage in (reference() for reference in self.storages) if storage is not None]

    def live_bytes(self):
        return sum(storage.nbytes() for storage in self.alive())

    def ask(self):
        self.asked = find_holders(self.alive(), budget_s=PATIENCE_S)

    def holders(self):
        return find_holders(self.alive(), budget_s=PATIENCE_S)

    def holder(self):
        """The one answer; what was asked while the program ran goes first."""
        holders = {holder.path: holder for holder in (self.asked or self.holders()) if holder is not None}
        assert len(holders) == 1, list(holders)
        return next(iter(holders.values()))

    @property
    def names(self):
        return vars(sys.modules[self.name])

    def __getitem__(self, name):
        return vars(sys.modules[self.name])[name]


@pytest.fixture
def program(tmp_path):
    programs = []
    thresholds = gc.get_threshold()
    gc.set_threshold(0)  # cycles go when a test says so

    def run(source):
        programs.append(Program(tmp_path))
        return programs[-1].run(source)

    yield run
    gc.set_threshold(*thresholds)
    for one in programs:
        sys.modules.pop(one.name, None)
