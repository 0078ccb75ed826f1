"""Reading this process, its workers, and files of `/proc` as kernels write them."""

from __future__ import annotations

import mmap
import subprocess
import sys

import psutil
import pytest

from pyrometer.memory.process.read import footprint, read_process, reset_peak
from pyrometer.record import from_json, to_json

ROLLUP = """\
555f24adc000-7ffe9a083000 ---p 00000000 00:00 0                          [rollup]
Rss:                1736 kB
Pss:                 213 kB
Pss_Dirty:           112 kB
Shared_Clean:       1584 kB
Shared_Dirty:          4 kB
Private_Clean:        40 kB
Private_Dirty:       112 kB
Swap:                  8 kB
"""


@pytest.fixture
def fake_proc(tmp_path):
    folder = tmp_path / str(psutil.Process().pid)
    folder.mkdir()
    (folder / "smaps_rollup").write_text(ROLLUP)
    (folder / "status").write_text("Name:\tpython\nVmPeak:\t  900 kB\nVmHWM:\t  2000 kB\n")
    return tmp_path


def test_the_parts_of_the_rollup_are_read_in_bytes(fake_proc):
    found = read_process(proc=fake_proc)
    assert found.own.rss_bytes == 1736 * 1024
    assert found.own.pss_bytes == 213 * 1024
    assert found.own.private_dirty_bytes == 112 * 1024
    assert found.own.shared_bytes == 1588 * 1024
    assert found.own.swap_bytes == 8 * 1024
    assert found.peak_bytes == 2000 * 1024


def test_without_a_rollup_psutil_tells_the_resident_size(tmp_path):
    found = footprint(psutil.Process(), tmp_path)
    assert found.rss_bytes == pytest.approx(psutil.Process().memory_info().rss, rel=0.2)
    assert found.pss_bytes is None


def test_no_shared_memory_file_system_is_no_error(tmp_path):
    assert read_process(shm=tmp_path / "none").shm_total_bytes is None


def test_this_process_is_consistent_and_survives_json():
    found = read_process()
    assert found.own.rss_bytes > 0
    assert found.python_blocks > 0
    assert found.pinned_bytes is None
    assert found.devices == []
    assert from_json(type(found), to_json(found)) == found


@pytest.mark.skipif(sys.platform != "linux", reason="smaps_rollup")
def test_shares_and_private_pages_are_within_the_resident_size():
    own = read_process().own
    assert own.private_dirty_bytes <= own.pss_bytes <= own.rss_bytes


class Cuda:
    """A stand-in for `torch.cuda` on a machine with two devices, of which the program uses the second."""

    asked = []

    def is_initialized(self):
        return True

    def device_count(self):
        return 2

    def memory_reserved(self, index):
        return (0, 3 * 2**20)[index]

    def memory_allocated(self, index):
        return (0, 2**20)[index]

    def mem_get_info(self, index):
        self.asked.append(index)
        return 10 * 2**20, 16 * 2**20

    def host_memory_stats(self):
        return {"allocated_bytes.current": 4096}


def test_only_devices_in_use_are_asked_and_what_torch_does_not_hold_is_told_apart(monkeypatch):
    monkeypatch.setattr("torch.cuda", Cuda())
    found = read_process()
    assert Cuda.asked == [1]
    assert [device.device for device in found.devices] == ["cuda:1"]
    assert found.devices[0].used_bytes == 6 * 2**20
    assert found.devices[0].outside_bytes == 3 * 2**20
    assert found.pinned_bytes == 4096


def test_workers_are_listed_while_they_live():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert child.pid in {worker.pid for worker in read_process().workers}
        child.stdin.close()
    assert child.pid not in {worker.pid for worker in read_process().workers}


@pytest.mark.skipif(sys.platform != "linux", reason="the peak can be reset on Linux only")
def test_a_reset_peak_forgets_what_was_before():
    block = mmap.mmap(-1, 64 * 2**20)  # goes back to the kernel for certain, unlike a piece of the heap
    block.write(b"x" * (64 * 2**20))
    high = read_process().peak_bytes
    block.close()
    assert reset_peak()
    assert read_process().peak_bytes <= high - 32 * 2**20


def test_a_peak_that_cannot_be_reset_is_said(tmp_path):
    assert not reset_peak(proc=tmp_path)


def test_reading_does_not_import_torch(run_python):
    assert (
        run_python("""
        import sys
        from pyrometer.memory.process.read import read_process
        read_process()
        print('"torch" in sys.modules' and ("true" if "torch" in sys.modules else "false"))
    """)
        is False
    )
