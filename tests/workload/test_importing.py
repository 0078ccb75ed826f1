from __future__ import annotations

import importlib
import pickle
import subprocess
import sys

import pytest

from pyrometer.errors import TargetError
from pyrometer.workload.importing import file_of, module_name
from pyrometer.workload.loading import load_workload
from pyrometer.workload.target import parse_target

BENCH = """
from dataclasses import dataclass
import torch
from torch import nn
import sizes

@dataclass
class Config:
    out: int = sizes.OUT

class Net(nn.Module):
    def forward(self, x):
        import late          # imported when the step runs, and only once
        self.late = getattr(self, "late", late)
        assert self.late is late
        return x.new_zeros(Config().out, late.WIDTH)

def work():
    return Net(), torch.ones(2, 4)
"""


def checkout(write, folder, out, width):
    write(f"{folder}/bench.py", BENCH)
    write(f"{folder}/sizes.py", f"OUT = {out}")
    write(f"{folder}/late.py", f"WIDTH = {width}")


def load(tmp_path, text):
    return load_workload(parse_target(text, cwd=tmp_path))


def test_two_checkouts_of_one_program_keep_their_own_siblings(write, tmp_path):
    checkout(write, "before", 3, 5)
    checkout(write, "after", 7, 9)
    before, after = load(tmp_path, "before/bench.py:work"), load(tmp_path, "after/bench.py:work")
    with before.open() as one, after.open() as two:
        for _ in range(2):
            for session, shape in ((one, (3, 5)), (two, (7, 9))):
                session.activate()
                assert session.step(session.prepare()).shape == shape
                assert sys.path[0] == str(tmp_path / ("before" if session is one else "after"))
    assert not {"sizes", "late"} & set(sys.modules)


def test_modules_of_one_name_in_two_working_directories(write, tmp_path):
    for folder, out, width in (("before", 3, 5), ("after", 7, 9)):
        checkout(write, folder, out, width)
        work = load_workload(parse_target("bench:work", cwd=tmp_path / folder))
        with work.open() as session:
            assert session.step(session.prepare()).shape == (out, width)


def test_the_same_file_is_imported_once(write, tmp_path):
    checkout(write, "here", 3, 5)
    one, two = load(tmp_path, "here/bench.py:work"), load(tmp_path, "here/bench.py:work")
    assert type(one.model) is type(two.model)
    assert one.model is not two.model


def test_what_importing_does_to_the_settings_it_does_for_every_factory(write, tmp_path):
    net = "import torch\ndef {}(): return torch.nn.ReLU(), torch.ones(2)\n"
    write("one.py", "import shared\n" + net.format("a") + net.format("b"))
    write("two.py", "import shared\n" + net.format("c"))
    write("three.py", net.format("d"))
    write("shared.py", "import torch\ntorch.set_float32_matmul_precision('high')")
    precisions = [
        load(tmp_path, text).surroundings.settings.matmul_precision
        for text in ("one.py:a", "one.py:b", "two.py:c", "three.py:d", "two:c", "three:d", "one.py:a")
    ]
    assert precisions == ["high", "high", "high", "highest", "high", "highest", "high"]


def test_modules_that_were_there_before_stay(write, tmp_path, monkeypatch):
    write("known/__init__.py", "")
    write("known/later.py", "")
    write("bench.py", "import torch, known.later\nwork = (torch.nn.ReLU(), torch.ones(2))")
    monkeypatch.syspath_prepend(tmp_path)
    known = importlib.import_module("known")
    load(tmp_path, "bench.py:work")
    assert sys.modules["known"] is known
    assert known.later is sys.modules["known.later"]
    for name in ("known", "known.later"):
        del sys.modules[name]
    monkeypatch.undo()


@pytest.mark.parametrize("stem", ["random", "torch", "json", "two-words", "ünïcode", "a__b", "9"])
def test_names_of_files_collide_with_nothing(stem, write, tmp_path):
    before = sys.modules.get(stem)
    write(f"{stem}.py", "import torch\ndef work(): return torch.nn.ReLU(), torch.ones(2)")
    load(tmp_path, f"{stem}.py:work")
    assert sys.modules.get(stem) is before
    path = tmp_path / f"{stem}.py"
    assert file_of(module_name(path)) == path


def test_relative_imports_of_a_file_inside_a_package(write, tmp_path):
    write("proj/__init__.py", "")
    write("proj/nets/__init__.py", "")
    write(
        "proj/nets/bench.py",
        "import torch\nfrom ..sizes import OUT\ndef work(): return torch.nn.Linear(4, OUT), torch.ones(2, 4)",
    )
    write("proj/sizes.py", "OUT = 3")
    work = load(tmp_path, "proj/nets/bench.py:work")
    with work.open() as session:
        assert session.step(session.prepare()).shape == (2, 3)
    assert not [name for name in sys.modules if name.startswith("proj")]


def test_a_package_that_hides_behind_an_imported_one_is_refused(write, tmp_path):
    write("email/__init__.py", "")
    write("email/message.py", "work = 3")
    import email.message  # noqa: F401

    with pytest.raises(
        TargetError, match=r"a module email\.message is already imported from .*; rename the package"
    ):
        load(tmp_path, "email/message.py:work")


def test_a_file_that_failed_is_imported_anew(write, tmp_path):
    path = write("bench.py", "raise ValueError('not yet')")
    with pytest.raises(Exception, match="not yet"):
        load(tmp_path, "bench.py:work")
    path.write_text("import torch\nwork = (torch.nn.ReLU(), torch.ones(2))")
    assert load(tmp_path, "bench.py:work").name == "ReLU"


def test_objects_of_a_users_file_are_pickled_for_processes_that_know_nothing_of_it(write, tmp_path):
    write("data.py", "import sizes\nclass Item:\n    value = sizes.OUT\ndef work(): return Item()")
    write("sizes.py", "OUT = 3")
    with pytest.raises(TargetError, match="got Item"):
        load(tmp_path, "data.py:work")
    item = sys.modules[module_name(tmp_path / "data.py")].Item()
    code = "import sys, pickle; print(pickle.loads(sys.stdin.buffer.read()).value)"
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(item), capture_output=True, check=True
    )
    assert done.stdout.split() == [b"3"]


@pytest.mark.slow
def test_spawned_workers_of_a_loader_find_the_dataset(write, tmp_path):
    write("sizes.py", "OUT = 3")
    write(
        "bench.py",
        """
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, Dataset
        from pyrometer import Training
        import sizes

        class Ones(Dataset):
            def __len__(self): return 2
            def __getitem__(self, i): return torch.ones(4), torch.ones(sizes.OUT)

        def work():
            net = nn.Linear(4, sizes.OUT)
            loader = DataLoader(Ones(), batch_size=2, num_workers=1, multiprocessing_context="spawn")
            return Training(net, nn.functional.mse_loss, torch.optim.SGD(net.parameters(), 0.1), loader)
        """,
    )
    with load(tmp_path, "bench.py:work").open() as session:
        assert session.step(session.prepare()).shape == ()
