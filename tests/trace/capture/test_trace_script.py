"""A script is traced without a change to it, and runs as without us."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pyrometer.errors import InputError, TargetError
from pyrometer.trace.capture.record import CaptureOptions
from pyrometer.trace.capture.script import trace_script


@pytest.mark.slow
def test_a_training_script(script, tmp_path, count, capfd):
    path = tmp_path / "trace.json.gz"
    done = trace_script(
        [script("for _ in range(10): step()\nprint('done')\nsys.exit(3)")], steps=4, path=path
    )
    assert done.observed.exit_code == 3
    assert done.observed.steps_from == "optimizer steps"
    assert capfd.readouterr() == ("done\n", "")
    assert done.trace.steps.height == 4
    assert count(done.trace, "phase:backward") == 4
    capture = done.trace.capture
    assert (capture.source, capture.num_steps, capture.notes) == ("script", 4, [])
    assert capture.file_bytes == path.stat().st_size
    assert sorted(each.name for each in tmp_path.iterdir()) == ["script.py", "trace.json.gz"]


def test_refusals(tmp_path, script):
    with pytest.raises(TargetError, match="no such file"):
        trace_script([str(tmp_path / "missing.py")])
    with pytest.raises(InputError, match="skip: got -1"):
        trace_script([script("")], skip=-1)


@pytest.mark.exhaustive
def test_too_few_steps_for_any(script, tmp_path):
    done = trace_script([script("for _ in range(3): step()")], path=tmp_path / "trace.json")
    assert done.trace is None
    assert any("skip fewer steps" in note for note in done.observed.notes)
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


@pytest.mark.exhaustive
def test_a_script_that_is_killed_while_it_is_recorded(script):
    text = "import os\nfor i in range(9):\n    step()\n    if i == 5: os._exit(7)"
    done = trace_script([script(text)], steps=5)
    assert done.observed.exit_code == 7
    assert done.trace is None
    assert any("was lost" in note for note in done.observed.notes)


@pytest.mark.exhaustive
def test_a_script_that_raises_says_the_same_and_leaves_the_trace_of_what_there_was(script, capfd):
    text = "import warnings\nwarnings.simplefilter('error')\nprint('x')\nfor i in range(9):\n    step()\n    if i == 6: 1 / 0"
    path = script(text)
    done = trace_script([path], steps=5)
    traced = capfd.readouterr()
    plain = subprocess.run([sys.executable, path], capture_output=True, check=False, text=True)
    assert traced == (plain.stdout, plain.stderr)
    assert "ZeroDivisionError" in traced.err
    assert done.observed.exit_code == plain.returncode == 1
    assert (
        done.trace.capture.num_steps == done.trace.steps.height == 3
    )  # what came after the last step is no step
    assert any("3 of 5" in note for note in done.trace.capture.notes)


@pytest.mark.slow
def test_options_are_obeyed_a_forked_child_records_nothing_and_memory_from_before_is_freed_without_a_word(
    script, capfd
):
    text = """
import os
for i in range(9):
    kept = torch.ones(64)
    step()
    if i == 5:
        child = os.fork()
        if child == 0:
            for _ in range(5): step()
            os._exit(0)
        os.waitpid(child, 0)
"""
    options = CaptureOptions(record_shapes=False, with_stack=True, with_modules=False, profile_memory=True)
    done = trace_script([script(text)], steps=3, options=options)
    assert done.observed.exit_code == 0
    assert done.trace.steps.height == 3
    rank = done.trace.ranks[0]
    assert rank.tables["python"].height
    assert not rank.tables["events"]["name"].str.starts_with("module:").any()
    assert capfd.readouterr() == ("", "")
