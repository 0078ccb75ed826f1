from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from pyrometer.errors import ExitCode, InputError, TargetError, UserProgramError
from pyrometer.record import to_json
from pyrometer.workload.inference import Inference
from pyrometer.workload.loading import load_workload
from pyrometer.workload.target import parse_target

PREAMBLE = """
import torch
from torch import nn
import pyrometer as pm

X = torch.ones(2, 4)

"""


@pytest.fixture
def load(write, tmp_path):
    def load(code: str, name: str = "work", file: str = "bench.py"):
        write(file, PREAMBLE + code)
        return load_workload(parse_target(f"{file}:{name}", cwd=tmp_path))

    return load


def run_once(work):
    with work.open() as session:
        session.activate()
        return session.step(session.prepare())


FORMS = {
    "workload": "def work(): return pm.Inference(nn.Linear(4, 3), X)",
    "pair": "def work(): return nn.Linear(4, 3), X",
    "pair with arguments": "def work(): return nn.Bilinear(4, 4, 3), (X, X)",
    "pair with keywords": "def work(): return nn.Linear(4, 3), {'input': X}",
    "pair with shapes": "def work(): return nn.Linear(4, 3), [(2, 4)]",
    "module with attribute": "class work(nn.Linear):\n    example_inputs = X\n    def __init__(self): super().__init__(4, 3)",
    "module with method": (
        "class Net(nn.Linear):\n    def example_inputs(self): return (X,)\ndef work(): return Net(4, 3)"
    ),
    "workload object": "work = pm.Inference(nn.Linear(4, 3), X)",
    "module object": "work = nn.Linear(4, 3)\nwork.example_inputs = X",
    "pair object": "work = (nn.Linear(4, 3), X)",
    "factory with defaults": "def work(size=3, *args, **kwargs): return nn.Linear(4, size), X",
    "method": "class work:\n    def __new__(cls): return (nn.Linear(4, 3), X)",
    "partial": "import functools\nwork = functools.partial(lambda n: (nn.Linear(4, n), X), 3)",
    "decorated": (
        "import functools\ndef deco(f):\n    @functools.wraps(f)\n    def g(): return f()\n    return g\n"
        "@deco\ndef work(): return nn.Linear(4, 3), X"
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_what_a_factory_may_be_and_return(form, load):
    assert run_once(load(FORMS[form])).shape == (2, 3)


def test_a_name_may_be_dotted(load):
    work = load("class Zoo:\n    @staticmethod\n    def small(): return nn.Linear(4, 3), X", name="Zoo.small")
    assert run_once(work).shape == (2, 3)


def test_training(load):
    work = load(
        "def work():\n"
        "    net = nn.Linear(4, 3)\n"
        "    return pm.Training(net, nn.functional.mse_loss, torch.optim.SGD(net.parameters(), 0.1), [(X, X[:, :3])])"
    )
    assert run_once(work).shape == ()


def test_a_module_is_found_from_the_working_directory(write, tmp_path):
    write("zoo/__init__.py", "")
    write("zoo/nets.py", PREAMBLE + "from . import sizes\ndef work(): return nn.Linear(4, sizes.OUT), X")
    write("zoo/sizes.py", "OUT = 3")
    assert run_once(load_workload(parse_target("zoo.nets:work", cwd=tmp_path))).shape == (2, 3)
    assert "zoo" not in sys.modules


def test_an_installed_module():
    with pytest.raises(
        TargetError, match=r"the factory needs obj; it is called without arguments: give defaults"
    ):
        load_workload(parse_target("json:dumps"))


BAD_TARGETS = {
    "no such factory": ("def wrok(): pass", r"bench\.py has no 'work'; did you mean 'wrok'\?$"),
    "nothing near": ("def main(): pass\ndef _hidden(): pass", r"has no 'work'; it has main$"),
    "nothing at all": ("", r"has no 'work'; it defines no function$"),
    "arguments": (
        "def work(size, depth, *, width=2): pass",
        r"the factory needs size, depth; it is called without",
    ),
    "class with arguments": (
        "class work(nn.Module):\n    def __init__(self, size): pass",
        r"the factory needs size;",
    ),
    "nothing returned": (
        "def work(): pm",
        r"got nothing \(None\): is a return missing\?; legal is a Workload",
    ),
    "wrong type": (
        "def work(): return 3",
        r"got int; legal is a Workload, a \(model, inputs\) pair, or an nn\.Module",
    ),
    "wrong object": ("work = {}", r"got dict; legal"),
    "three": ("def work(): return nn.ReLU(), X, X", r"got a tuple of ReLU, Tensor, Tensor; legal"),
    "the wrong way round": ("def work(): return X, nn.ReLU()", r"got a tuple of Tensor, ReLU; legal"),
    "coroutine": ("async def work(): pass", r"got coroutine; legal"),
    "generator": ("def work(): yield 3", r"got generator; legal"),
    "class, not an object": (
        "class work(nn.ReLU): pass",
        r"gives a bare work, and nothing says what to feed it; return",
    ),
}
BAD_INPUTS = {
    "no optimizer": (
        "def work(): return pm.Training(nn.Linear(4, 3), None, None, [])",
        r"bench\.py:work: optimizer: got NoneType; training needs a torch\.optim\.Optimizer",
    ),
    "inputs of a wrong type": ("def work(): return nn.ReLU(), 3", r"inputs: got int; legal are a tensor"),
    "inputs in a list": (
        "def work(): return nn.ReLU(), [X, X]",
        r"got list; .*; write several arguments as a tuple",
    ),
    "another device": (
        "def work(): return nn.Linear(4, 3, device='meta'), X",
        r"inputs on cpu but the model on meta; move",
    ),
}
FAILURES = {
    "factory raises": (
        "def work():\n    data = load()\n\ndef load():\n    raise FileNotFoundError('no data\\nat all')",
        r"bench\.py:work: the factory raised FileNotFoundError: no data \(.*bench\.py:11\)$",
    ),
    "in a library": (
        "def work():\n    return torch.zeros(2) @ torch.zeros(3)",
        r"the factory raised RuntimeError: .* \(.*bench\.py:8\)$",
    ),
    "module raises": ("1 / 0", r"importing it raised ZeroDivisionError: division by zero \(.*bench\.py:7\)$"),
    "syntax": ("def work(:", r"importing it raised SyntaxError: invalid syntax \(.*bench\.py:7\)$"),
    "missing dependency": ("import no_such_thing", r"ModuleNotFoundError: No module named 'no_such_thing' \(.*bench\.py:7\)$"),
    "sys.exit": ("import sys\ndef work(): sys.exit(3)", r"the factory raised SystemExit: 3 \(.*bench\.py:8\)$"),
    "sys.exit on import": ("import sys; sys.exit('usage')", r"importing it raised SystemExit: usage"),
    "example_inputs raises": (
        "class Net(nn.ReLU):\n    def example_inputs(self): return 1 / 0\ndef work(): return Net()",
        r"example_inputs\(\) raised ZeroDivisionError: .*bench\.py:8\)$",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_TARGETS)
def test_targets_that_lead_nowhere(name, load):
    code, message = BAD_TARGETS[name]
    with pytest.raises(TargetError, match=message) as caught:
        load(code)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == ExitCode.FAILURE


@pytest.mark.parametrize("name", BAD_INPUTS)
def test_workloads_that_are_put_together_wrongly(name, load):
    code, message = BAD_INPUTS[name]
    with pytest.raises(InputError, match=message) as caught:
        run_once(load(code))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", FAILURES)
def test_user_code_that_fails_is_named_with_file_and_line(name, load):
    code, message = FAILURES[name]
    with pytest.raises(UserProgramError, match=message) as caught:
        load(code)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == ExitCode.USER_PROGRAM
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize("raw", [b"\xff\xfe\x00", b"x = '\xe4'\n", b"x = 0\x00\n"])
def test_files_that_are_no_text(raw, write, tmp_path):
    write("bench.py", raw)
    with pytest.raises(
        UserProgramError, match=r"bench\.py:work: importing it raised (SyntaxError|ValueError)"
    ):
        load_workload(parse_target("bench.py:work", cwd=tmp_path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no_such_package:work", "there is no module 'no_such_package' in .* nor installed$"),
        ("zoo.nett:work", "there is no module 'zoo.nett' in"),
        ("zooo:work", "there is no module 'zooo' .*; did you mean 'zoo'"),
        ("a.b.c:work", "there is no module 'a' in"),
    ],
)
def test_modules_that_do_not_exist(text, message, write, tmp_path):
    write("zoo/__init__.py", "")
    with pytest.raises(TargetError, match=message):
        load_workload(parse_target(text, cwd=tmp_path))


def test_a_dependency_that_a_module_misses_is_not_taken_for_the_module(write, tmp_path):
    write("zoo.py", "import zoo_data")
    with pytest.raises(UserProgramError, match=r"No module named 'zoo_data' \(.*zoo\.py:1\)"):
        load_workload(parse_target("zoo:work", cwd=tmp_path))


def test_a_script_is_not_loaded(write, tmp_path):
    write("train.py", "")
    with pytest.raises(TargetError, match="a script is observed as it runs"):
        load_workload(parse_target("train.py", cwd=tmp_path))


def random_states():
    legacy = np.random.get_state()[1]  # noqa: NPY002 - what a user's seed changes
    return torch.get_rng_state().tolist(), random.getstate(), legacy.tolist()


def test_side_effects_of_a_factory_are_undone_and_its_prints_leave_stdout_alone(load, capfd, tmp_path):
    before = random_states()
    work = load(
        "import os, random, sys, ctypes, subprocess, numpy as np\n"
        "print('importing', flush=True)\n"
        "def work():\n"
        "    print('python'); os.write(1, b'system\\n'); subprocess.run(['echo', 'child'])\n"
        "    ctypes.CDLL(None).puts(b'C code')\n"
        "    os.mkdir('made'); os.chdir('made'); sys.argv.append('--more')\n"
        "    torch.manual_seed(7); random.seed(7); np.random.seed(7)\n"
        "    torch.set_grad_enabled(False)\n"
        "    return nn.Linear(4, 3), X\n"
    )
    out, err = capfd.readouterr()
    assert out == ""
    assert {"importing", "python", "system", "child", "C code"} <= set(err.splitlines())
    assert (tmp_path / "made").is_dir()  # it ran in the target's directory
    assert random_states() == before
    assert run_once(work).shape == (2, 3)


def torch_settings():
    return torch.get_default_dtype(), torch.get_num_threads(), torch.get_float32_matmul_precision()


def test_settings_of_a_factory_hold_in_its_sessions_and_nowhere_else(load):
    before = torch_settings()
    work = load(
        "class Net(nn.Module):\n"
        "    def forward(self, x): return torch.zeros(1), torch.get_num_threads(), torch.get_float32_matmul_precision()\n"
        "def work():\n"
        "    torch.set_default_dtype(torch.float64); torch.set_num_threads(3)\n"
        "    torch.set_float32_matmul_precision('high')\n"
        "    return Net(), X\n"
    )
    assert torch_settings() == before
    with Inference(nn.Identity(), torch.ones(1)).open() as other, work.open() as session:
        for _ in range(2):
            session.activate()
            zeros, threads, precision = session.step(session.prepare())
            assert (zeros.dtype, threads, precision) == (torch.float64, 3, "high")
            other.activate()
            assert torch_settings() == before
    assert torch_settings() == before


def test_argv_is_bare_while_a_file_is_imported(load, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["pyrometer", "bench", "--json"])
    run_once(
        load("import argparse; argparse.ArgumentParser().parse_args()\ndef work(): return nn.Linear(4, 3), X")
    )
    assert sys.argv == ["pyrometer", "bench", "--json"]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    model = nn.Sequential(nn.Linear(4, 3), nn.Dropout(), nn.BatchNorm1d(3)).eval()
    path = tmp_path_factory.mktemp("exported") / "net.pt2"
    x = torch.ones(2, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own
        torch.export.save(torch.export.export(model, (x,)), path)
    return path, model(x)


@pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")  # torch copying its own
def test_an_exported_program_brings_its_inputs(exported):
    path, expected = exported
    work = load_workload(parse_target(str(path)))
    assert work.name == "net"
    torch.testing.assert_close(run_once(work), expected)
    torch.testing.assert_close(
        run_once(work.variant(dtype="float64")), expected.double(), rtol=1e-5, atol=1e-6
    )
    assert run_once(work.variant(threads=1)).shape == (2, 3)


@pytest.mark.parametrize("raw", [b"", b"not a zip", b"PK\x03\x04 cut off"])
def test_files_that_are_no_exported_program(raw, write, tmp_path):
    write("net.pt2", raw)
    with pytest.raises(
        TargetError, match=r"net\.pt2: not an exported program that torch .* can load"
    ) as caught:
        load_workload(parse_target("net.pt2", cwd=tmp_path))
    assert "\n" not in str(caught.value)


def test_a_truncated_exported_program(exported, write, tmp_path):
    write("net.pt2", exported[0].read_bytes()[:-500])
    with pytest.raises(TargetError, match="not an exported program"):
        load_workload(parse_target("net.pt2", cwd=tmp_path))


def test_a_state_dict_is_no_exported_program(tmp_path):
    torch.save({"weight": torch.zeros(2)}, tmp_path / "net.pt2")
    with pytest.raises(TargetError, match="not an exported program"):
        load_workload(parse_target("net.pt2", cwd=tmp_path))


@pytest.mark.exhaustive
def test_the_same_target_again_in_a_fresh_process(load, tmp_path):
    load("def work(): return pm.Inference(nn.Linear(4, 3), X, unit='frames')")
    spec = to_json(parse_target("bench.py:work", cwd=tmp_path).spec).decode()
    code = (
        "import sys, json\n"
        "from pyrometer.record import from_json\n"
        "from pyrometer.workload.loading import load_workload\n"
        "from pyrometer.workload.target import TargetSpec\n"
        "work = load_workload(from_json(TargetSpec, sys.argv[1]).target())\n"
        "with work.open() as session: shape = list(session.step(session.prepare()).shape)\n"
        "print(json.dumps([work.unit, shape]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, spec], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert json.loads(done.stdout) == ["frames", [2, 3]]


def test_a_relative_path_stays_relative_to_where_it_was_written(load, tmp_path, monkeypatch):
    load("def work(): return nn.Linear(4, 3), X")
    target = parse_target("bench.py:work", cwd=tmp_path)
    monkeypatch.chdir(Path(os.sep))
    assert run_once(load_workload(target)).shape == (2, 3)
    monkeypatch.undo()
