"""The C library's heap, for real."""

from __future__ import annotations

import platform

import pytest

from pyrometer.memory.process.heap import heap_state, trim_heap

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the GNU C library")

FRAGMENT = """
    import json
    import torch
    from pyrometer.memory.process.heap import heap_state, trim_heap
    from pyrometer.memory.process.read import read_process
    def now():
        return read_process().own.rss_bytes, heap_state().used_bytes, heap_state().free_bytes
    start = now()
    blocks = [torch.zeros(8000) for _ in range(3000)]
    full = now()
    last = blocks[-1]
    del blocks
    freed = now()
    trim_heap()
    print(json.dumps([start, full, freed, now()]))
"""
BLOCKS = 3000 * 32000


def test_freed_blocks_are_kept_until_the_heap_is_trimmed(run_python):
    start, full, freed, trimmed = run_python(FRAGMENT)
    assert full[1] - start[1] > 0.9 * BLOCKS
    assert freed[1] - start[1] < 0.1 * BLOCKS
    assert freed[2] - start[2] > 0.9 * BLOCKS
    assert freed[0] > start[0] + 0.8 * BLOCKS
    assert trimmed[0] < start[0] + 0.2 * BLOCKS


def test_the_environment_that_is_advised_gives_memory_back_by_itself(run_python):
    from pyrometer.memory.process.trial import RETENTION_OFF

    larger = FRAGMENT.replace("zeros(8000)", "zeros(32000)").replace("range(3000)", "range(750)")
    start, full, freed, _ = run_python(larger, **RETENTION_OFF)
    assert full[0] > start[0] + 0.8 * BLOCKS
    assert freed[0] < start[0] + 0.2 * BLOCKS


def test_the_state_of_this_process_can_be_read_and_trimmed():
    assert heap_state().used_bytes > 0
    assert trim_heap()


def test_elsewhere_there_is_no_such_heap(monkeypatch):
    monkeypatch.setattr("sys.platform", "darwin")
    assert heap_state() is None
    assert not trim_heap()
