"""A worker does what it is asked, and nothing that it does can harm who asks."""

from __future__ import annotations

import contextlib
import os
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyrometer.bench import worker as workers
from pyrometer.bench.comparison.trial import Trial
from pyrometer.bench.worker import Worker
from pyrometer.errors import InputError, PyrometerError, UserProgramError
from pyrometer.tuning.levers.choice import LeverChoice, label_of
from pyrometer.tuning.trials import protocol
from pyrometer.tuning.trials.gate import Limits
from pyrometer.tuning.trials.laboratory import Laboratory
from pyrometer.workload.program.describe import multiplies_bfloat16
from pyrometer.workload.target import parse_target

pytestmark = pytest.mark.slow  # a process that imports torch per test


def laboratory(programs, name, folder, **options):
    source = protocol.Source(spec=parse_target(f"{programs}:{name}").spec)
    return Laboratory(source, folder, Limits(), cwd=str(programs.parent), **options)


@pytest.fixture(scope="module")
def lab(programs, tmp_path_factory):
    return laboratory(programs, "mlp", tmp_path_factory.mktemp("lab"))


@pytest.fixture(scope="module")
def baseline(lab):
    with lab.open(()) as side:
        lab.keep_reference(side)
        yield side


def test_a_configuration_that_changes_nothing_computes_the_same(lab, baseline):
    numerics = lab.check(baseline)
    assert numerics.passes
    assert numerics.max_abs == 0.0
    assert {"as given", "zeros", "large values", "a single sample"} <= {
        case.label for case in numerics.counted
    }


def test_an_interrupted_comparison_decides_nothing(lab, baseline, monkeypatch):
    """Also after the first blocks; and what was asked for then is not answered to whoever asks next."""

    def interrupted(trial):
        trial.blocks.run()
        monkeypatch.setattr(workers.select, "select", _interrupt)
        trial.blocks.run()

    monkeypatch.setattr(Trial, "_run_blocks", interrupted)
    with lab.open(()) as one, lab.open((LeverChoice(lever="drop_dropout"),)) as other:
        with pytest.raises(KeyboardInterrupt):
            lab.compare(one, other, budget_s=5.0)
        monkeypatch.undo()
        (ended,) = (side for side in (one, other) if not side.worker.alive)
        with pytest.raises(UserProgramError):
            lab.peak_bytes(ended)


def _interrupt(*_):
    raise KeyboardInterrupt


def test_sides_run_in_processes_of_their_own_and_are_compared_in_turn(lab, baseline):
    with lab.open((LeverChoice(lever="drop_dropout"),), fresh_seed=3) as candidate:
        assert candidate.opened.not_applied is None
        assert candidate.opened.name == baseline.opened.name
        # The cases come from the reference, whatever inputs the process runs on.
        assert lab.check(candidate).max_abs == 0.0
        verdict = lab.compare(baseline, candidate, budget_s=0.5)
    assert verdict.num_blocks >= 1
    assert verdict.candidate == "drop_dropout"


def test_the_survey_tells_what_fits_and_why_the_rest_does_not(lab, baseline):
    surveyed = lab.survey(baseline, ["drop_dropout", "channels_last", "fused_optimizer"])
    assert surveyed.choices == {"drop_dropout": [{}]}
    assert surveyed.refused == {
        "channels_last": "the model has no 2-d convolution",
        "fused_optimizer": "it is for training",
    }
    assert surveyed.signature.inputs == ["float32[8, 16]"]


@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize(
    ("metric", "said"),
    [("constant", "cannot tell right from wrong"), ("raises", "KeyError"), ("absent", "absent")],
)
def test_a_metric_that_says_nothing_is_refused_before_anything_is_tried(
    programs, baseline, tmp_path, metric, said
):
    asked = laboratory(programs, "mlp", tmp_path, metric=f"programs.py:{metric}")
    with pytest.raises(PyrometerError, match=said):
        asked.keep_reference(baseline)


@pytest.mark.usefixtures("lab")
def test_a_metric_may_look_into_the_model_and_have_no_value_for_zeros(programs, baseline, tmp_path):
    asked = laboratory(programs, "mlp", tmp_path, metric="programs.py:correlation")
    asked.keep_reference(baseline)
    checked = asked.check(baseline)
    assert checked.passes
    assert checked.metric == checked.reference_metric


@pytest.mark.exhaustive
def test_a_program_that_fails_is_told_in_its_own_words(programs, tmp_path):
    with (
        pytest.raises(UserProgramError, match="no weights here"),
        laboratory(programs, "fails", tmp_path).open(()),
    ):
        pass


@pytest.fixture
def unruly():
    """A worker whose process does what a test says in place of answering."""

    def start(code, tmp_path):
        command = [sys.executable, "-c", textwrap.dedent(code)]
        return contextlib.closing(Worker(tmp_path / "log.txt", command))

    return start


def test_a_worker_that_is_killed_leaves_its_last_words(unruly, tmp_path):
    code = """
        import os, signal, sys
        sys.stdin.readline()
        print("out of memory in layer 7", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    with unruly(code, tmp_path) as child, pytest.raises(UserProgramError, match=r"SIGKILL.*layer 7"):
        child.ask(protocol.Peak(), protocol.PeakRead, timeout_s=60)


def test_a_worker_that_hangs_is_ended_with_all_that_it_started(unruly, tmp_path):
    code = f"""
        import subprocess, sys
        child = subprocess.Popen([{sys.executable!r}, "-c", "import time; time.sleep(1000)"])
        open({str(tmp_path / "pid")!r}, "w").write(str(child.pid))
        import time
        time.sleep(1000)
    """
    with unruly(code, tmp_path) as child:
        with pytest.raises(UserProgramError, match="took longer than"):
            child.ask(protocol.Peak(), protocol.PeakRead, timeout_s=2)
        assert isinstance(child, Worker)
        with pytest.raises(UserProgramError):
            child.ask(protocol.Peak(), protocol.PeakRead, timeout_s=2)
    import psutil

    pid = int((tmp_path / "pid").read_text())
    with contextlib.suppress(
        psutil.NoSuchProcess
    ):  # nobody's child any more: gone, or killed and waiting for init
        orphan = psutil.Process(pid)
        while (
            orphan.status() != psutil.STATUS_ZOMBIE
        ):  # the kernel takes a moment; a test that hangs has failed
            os.sched_yield()


def test_whoever_waits_for_a_worker_that_another_thread_kills_is_told(unruly, tmp_path):
    code = """
        import sys
        sys.stdin.read()
    """
    with unruly(code, tmp_path) as child, ThreadPoolExecutor(1) as threads:
        asked = threads.submit(child.ask, protocol.Peak(), protocol.PeakRead, timeout_s=600)
        child.kill()
        with pytest.raises(UserProgramError, match="SIGKILL"):
            asked.result(60)


def test_what_a_program_prints_is_no_answer(unruly, tmp_path):
    code = """
        import os, sys
        answers = os.fdopen(os.dup(1), "wb"); os.dup2(2, 1)
        for line in sys.stdin.buffer:
            print("step 1 of 10", flush=True)
            answers.write(b'[{"peak_bytes":5,"source":"test"},null]\\n'); answers.flush()
    """
    with unruly(code, tmp_path) as child:
        assert child.ask(protocol.Peak(), protocol.PeakRead, timeout_s=60).peak_bytes == 5


def test_training_is_compared_by_its_losses_and_gradients(programs, tmp_path):
    lab = laboratory(programs, "training", tmp_path)
    with lab.open(()) as side:
        lab.keep_reference(side)
    with lab.open((LeverChoice(lever="fused_optimizer"),)) as changed:
        numerics = lab.check(changed)
        assert changed.opened.not_applied is None
    assert numerics.passes, numerics.refused
    assert {case.label for case in numerics.counted} == {"losses of 12 steps", "gradients of the first step"}


def test_an_unpicklable_workload_is_told_what_to_do_instead(tmp_path):
    import torch

    import pyrometer as pm
    from pyrometer.tuning.trials.sending import send

    work = pm.Inference(torch.nn.Linear(2, 2), torch.randn(1, 2))
    work.name = (tmp_path / "held").open("w")
    try:
        with pytest.raises(InputError, match="name a target instead"):
            send(work, tmp_path / "work.pickle")
    finally:
        work.name.close()


@pytest.mark.usefixtures("baseline")
def test_what_was_exported_is_loaded_when_a_configuration_is_opened_again(lab):
    exported, written = (LeverChoice(lever="onnxruntime"),), []
    for _ in range(2):
        with lab.open(exported) as side:
            assert side.opened.not_applied is None
            assert lab.check(side).passes
        written.append([Path(path).stat().st_mtime_ns for path in lab.files_of(exported)["onnxruntime"]])
    assert written[0] == written[1]


@pytest.fixture(scope="module")
def convolutions(programs, tmp_path_factory):
    lab = laboratory(programs, "convolutions", tmp_path_factory.mktemp("convolutions"))
    with lab.open(()) as side:
        lab.keep_reference(side)
    return lab


@pytest.mark.parametrize(
    "choices",
    [
        pytest.param([LeverChoice(lever="aot_inductor")], marks=pytest.mark.exhaustive),
        pytest.param(
            [LeverChoice(lever="aot_inductor", parameters={"freezing": True})], marks=pytest.mark.exhaustive
        ),
        pytest.param(
            [LeverChoice(lever="fold_batchnorm"), LeverChoice(lever="onnxruntime")],
            marks=pytest.mark.exhaustive,
        ),
        [LeverChoice(lever="fold_batchnorm"), LeverChoice(lever="openvino")],
        pytest.param(
            [LeverChoice(lever="openvino_bf16")],
            marks=pytest.mark.skipif(not multiplies_bfloat16(), reason="the CPU does not multiply bfloat16"),
        ),
    ],
    ids=label_of,
)
def test_other_runtimes_compute_the_same_where_a_crash_harms_nobody(convolutions, choices):
    with convolutions.open(tuple(choices)) as changed:
        assert changed.opened.not_applied is None
        assert changed.opened.artefact_bytes > 0
        numerics = convolutions.check(changed)
    assert numerics.passes, numerics.refused
