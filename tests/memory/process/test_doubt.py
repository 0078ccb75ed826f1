"""Each cause is told from the others, in made-up readings and in real processes."""

from __future__ import annotations

import sys

import pytest

from pyrometer.memory.process.doubt import explain_growth, trim_and_read
from pyrometer.memory.process.growth import EnvironmentTrial, Hints, Trim
from pyrometer.memory.process.record import DeviceMemory, Footprint
from pyrometer.record import from_json, to_json

MB = 2**20
CLEAR = {"tensor_growth_bytes": 0, "num_shapes": 1, "num_compilations": 0}


def worker(private, shared):
    return Footprint(pid=7, rss_bytes=200 * MB, private_dirty_bytes=private * MB, shared_bytes=shared * MB)


def device(used, reserved):
    return DeviceMemory(
        device="cuda:0",
        allocated_bytes=0,
        reserved_bytes=reserved * MB,
        used_bytes=used * MB,
        total_bytes=800 * MB,
    )


def trial(saved):
    return EnvironmentTrial(
        command=["x"], environment={}, peak_bytes=300 * MB, peak_with_bytes=(300 - saved) * MB
    )


def test_no_growth_is_said_before_anything_is_asked(reading):
    found = explain_growth(reading(100), reading(100))
    assert found.cause == "no growth"


def test_growth_of_less_than_one_per_cent_is_none(reading):
    assert explain_growth(reading(1000), reading(1009), hints=Hints(**CLEAR)).cause == "no growth"
    assert explain_growth(reading(1000), reading(1020), hints=Hints(**CLEAR)).cause == "native leak"


@pytest.mark.parametrize(
    ("cause", "before", "after", "hints"),
    [
        ("tensors", {}, {"rss": 150}, {"tensor_growth_bytes": 45 * MB}),
        ("retention", {}, {"rss": 150}, {"trim": Trim(before_bytes=150 * MB, after_bytes=105 * MB)}),
        ("primitive cache", {}, {"rss": 150}, {"num_shapes": 500, "trial": trial(50)}),
        ("compile cache", {}, {"rss": 150}, {"num_compilations": 12}),
        ("Python objects", {}, {"rss": 150, "python_blocks": 10**6}, {}),
        ("copy-on-write in workers", {"workers": [worker(20, 180)]}, {"workers": [worker(90, 110)]}, {}),
        (
            "device memory outside of torch",
            {"devices": [device(400, 300)]},
            {"devices": [device(460, 300)]},
            {},
        ),
        ("native leak", {}, {"rss": 150, "used": 50}, {}),
    ],
)
def test_each_cause_is_named_by_its_own_evidence(reading, cause, before, after, hints):
    found = explain_growth(
        reading(**before), reading(**after), num_steps=100, hints=Hints(**{**CLEAR, **hints})
    )
    assert found.cause == cause
    assert found.bytes_per_step == found.growth_bytes / 100
    decisive = next(branch for branch in found.branches if branch.cause == cause)
    assert decisive.answer == "yes"
    assert decisive.next_step
    assert decisive.evidence in found.summary
    assert from_json(type(found), to_json(found)) == found


@pytest.mark.parametrize(
    ("cause", "after", "hints"),
    [
        ("tensors", {"rss": 150}, {"tensor_growth_bytes": 5 * MB}),
        ("retention", {"rss": 150}, {"trim": Trim(before_bytes=150 * MB, after_bytes=145 * MB)}),
        ("primitive cache", {"rss": 150}, {"num_shapes": 500, "trial": trial(2)}),
        ("Python objects", {"rss": 150, "python_blocks": 10_000}, {}),
        ("device memory outside of torch", {"devices": [device(460, 360)]}, {}),
        ("copy-on-write in workers", {"workers": [worker(90, 180)]}, {}),
    ],
)
def test_a_small_part_is_not_the_cause(reading, cause, after, hints):
    before = reading(workers=[worker(20, 180)], devices=[device(400, 300)])
    found = explain_growth(before, reading(**after), hints=Hints(**{**CLEAR, **hints}))
    assert found.cause != cause


def test_while_a_question_is_open_nothing_is_excluded(reading):
    found = explain_growth(
        reading(), reading(150), hints=Hints(num_shapes=40, command=["python", "train.py"])
    )
    assert found.cause == "undecided"
    unknown = {branch.cause: branch.next_step for branch in found.branches if branch.answer == "unknown"}
    assert set(unknown) == {"tensors", "primitive cache", "compile cache", "native leak"}
    assert unknown["primitive cache"].endswith(
        "ONEDNN_PRIMITIVE_CACHE_CAPACITY=0 LRU_CACHE_CAPACITY=1 python train.py"
    )
    assert "memray run --native -o leak.bin train.py" in unknown["native leak"]


def test_kept_free_memory_is_a_suspicion_until_the_heap_is_trimmed(reading):
    before, after = reading(), reading(150, free=48)
    suspected = explain_growth(before, after, hints=Hints(**CLEAR))
    assert suspected.cause == "undecided"
    assert "malloc_trim" in next(b.next_step for b in suspected.branches if b.cause == "retention")


def test_workers_and_devices_that_came_later_are_not_compared(reading):
    found = explain_growth(
        reading(), reading(workers=[worker(90, 0)], devices=[device(700, 0)]), hints=Hints(**CLEAR)
    )
    assert found.cause == "no growth"


@pytest.mark.skipif(sys.platform != "linux", reason="malloc_trim")
def test_trimming_says_what_it_did():
    trim = trim_and_read()
    assert trim.after_bytes > 0


PRELUDE = """
    import gc, multiprocessing
    from pyrometer.memory.process.doubt import explain_growth, trim_and_read
    from pyrometer.memory.process.growth import Hints
    from pyrometer.memory.process.read import read_process
    from pyrometer.record import to_json
"""
RETENTION = (
    PRELUDE
    + """
    import torch
    torch.zeros(10) + 1
    before = read_process()
    tensors = [torch.zeros(8000) for _ in range(3000)]
    keep = tensors[-1]
    del tensors
    after = read_process()
    hints = Hints(tensor_growth_bytes=32000, num_shapes=1, num_compilations=0, trim=trim_and_read())
    print(to_json(explain_growth(before, after, hints=hints)).decode())
"""
)
NATIVE = (
    PRELUDE
    + """
    import ctypes
    malloc = ctypes.CDLL(None).malloc
    malloc.restype = ctypes.c_void_p
    before = read_process()
    for _ in range(2000):
        ctypes.memset(malloc(ctypes.c_size_t(20000)), 1, 20000)
    after = read_process()
    hints = Hints(tensor_growth_bytes=0, num_shapes=1, num_compilations=0, trim=trim_and_read())
    print(to_json(explain_growth(before, after, hints=hints)).decode())
"""
)
PYTHON = (
    PRELUDE
    + """
    before = read_process()
    table = [[str(number)] for number in range(300_000)]
    after = read_process()
    hints = Hints(tensor_growth_bytes=0, num_shapes=1, num_compilations=0, trim=trim_and_read())
    print(to_json(explain_growth(before, after, hints=hints)).decode())
"""
)
COPY_ON_WRITE = (
    PRELUDE
    + """
    paths = [f"/data/images/{number:012}.jpg" for number in range(300_000)]
    gc.freeze()
    def work(ask, answer):
        gc.disable()
        for command in iter(ask.recv, "stop"):
            answer.send(sum(len(path) for path in paths) if command == "epoch" else 0)
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    back, forth = fork.Pipe()
    child = fork.Process(target=work, args=(there, forth))
    child.start()
    def ask(command):
        here.send(command)
        back.recv()
    ask("warm")
    before = read_process()
    ask("epoch")
    after = read_process()
    here.send("stop")
    child.join()
    print(to_json(explain_growth(before, after, hints=Hints(tensor_growth_bytes=0))).decode())
"""
)


@pytest.mark.skipif(sys.platform != "linux", reason="smaps_rollup, fork and the GNU C library")
@pytest.mark.parametrize(
    ("program", "cause"),
    [
        (RETENTION, "retention"),
        (NATIVE, "native leak"),
        (PYTHON, "Python objects"),
        (COPY_ON_WRITE, "copy-on-write in workers"),
    ],
    ids=["retention", "native leak", "python objects", "copy on write"],
)
def test_real_processes_are_explained(run_python, program, cause):
    assert run_python(program)["cause"] == cause
