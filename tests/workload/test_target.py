from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.errors import TargetError
from pyrometer.record import from_json, to_json
from pyrometer.workload.target import TargetSpec, parse_target


@pytest.fixture
def here(write, tmp_path):
    for name in ("train.py", "sub/model.py", "we:ird/file.py", "net.pt2"):
        write(name, "")
    return tmp_path


GOOD = {
    "train.py:work": ("file", "train.py", "work"),
    "./train.py:work": ("file", "train.py", "work"),
    "sub/model.py:Net.build": ("file", "sub/model.py", "Net.build"),
    "we:ird/file.py:work": ("file", "we:ird/file.py", "work"),
    "sub/../train.py:work": ("file", "train.py", "work"),
    "package.module:factory": ("module", None, "factory"),
    "package:factory": ("module", None, "factory"),
    "net.pt2": ("exported", "net.pt2", None),
    "train.py": ("script", "train.py", None),
}


@pytest.mark.parametrize("text", GOOD)
def test_every_form_of_a_target(text, here):
    kind, file, factory = GOOD[text]
    target = parse_target(text, cwd=here)
    assert (target.kind, target.factory, target.text) == (kind, factory, text)
    assert target.place == (text.partition(":")[0] if file is None else str((here / file).resolve()))


def test_a_script_takes_arguments(here):
    target = parse_target("train.py", ["--epochs", "1"], cwd=here)
    assert target.spec.args == ["--epochs", "1"]


BAD = {
    "": r"^\(empty\): not a target; a target is file\.py:factory, package\.module:factory, an exported",
    "train": r"not a target \(a module needs the name of a factory: train:NAME\)",
    "train.py:": r"no name follows the colon",
    "train.py:a:b": r"'a:b' is not a name",
    "package:a:b": r"'a:b' is not a name",
    "train.py:1st": r"'1st' is not a name",
    "train.py:wo rk": r"'wo rk' is not a name",
    "pack-age:f": r"not a target; a target is",
    "sub/model:f": r"not a target; a target is",
    "tran.py:work": r"there is no file tran\.py; did you mean 'train\.py'\?$",
    "tran.py": r"there is no file tran\.py; did you mean 'train\.py'\?$",
    "nofile.py:work": r"there is no file nofile\.py$",
    "zzz.py:work": r"there is no file zzz\.py$",
    "nett.pt2": r"did you mean 'net\.pt2'\?$",
    "sab/model.py:f": r"there is no directory sab$",
    "sub": r"not a target",
    "sub.py:f": r"there is no file sub\.py$",
    "net.pt2:f": r"an exported program has no factory; write net\.pt2$",
    "weights.pth": r"weights alone do not say what to run: write a factory that loads them",
}


@pytest.mark.parametrize("text", BAD)
def test_bad_targets_are_refused_in_one_line(text, here):
    with pytest.raises(TargetError, match=BAD[text]) as caught:
        parse_target(text, cwd=here)
    assert "\n" not in str(caught.value)


def test_a_directory_is_no_target(here):
    (here / "folder.py").mkdir()
    with pytest.raises(TargetError, match=r"folder\.py is a directory; a target is"):
        parse_target("folder.py:f", cwd=here)


@pytest.mark.parametrize("text", ["train.py:work", "package:work", "net.pt2"])
def test_arguments_are_for_scripts(text, here):
    with pytest.raises(TargetError, match="arguments after -- are for scripts"):
        parse_target(text, ["--epochs", "1"], cwd=here)


@given(st.text(max_size=40))
def test_any_text_is_a_target_or_a_target_error(text):
    try:
        target = parse_target(text, cwd=Path("/"))
    except TargetError:
        return
    assert target.kind == "module"


@pytest.mark.parametrize("text", GOOD)
def test_a_spec_survives_json_and_leads_to_the_same_target(text, here):
    args = ["--x"] if text == "train.py" else []
    target = parse_target(text, args, cwd=here)
    spec = from_json(TargetSpec, to_json(target.spec))
    assert spec.target() == target


def test_parsing_imports_no_torch():
    code = "import sys; import pyrometer.workload.target as t; t.parse_target('a:b'); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
