"""What else the machine was doing: on known numbers, and for real beside a competitor."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import psutil
import pytest

from pyrometer.errors import UsageError
from pyrometer.hardware.conditions import ConditionsProbe, conditions_between
from pyrometer.hardware.counters import CpuReading, SystemCpuMeter
from pyrometer.hardware.cpu import usable_cpus
from pyrometer.hardware.nvml import GpuReading, count_others
from pyrometer.hardware.record import Conditions

START = CpuReading(
    at_s=100.0,
    busy_s=1000.0,
    idle_s=5000.0,
    steal_s=10.0,
    own_s=50.0,
    involuntary_switches=7,
    clock_mhz=3000.0,
    num_throttles=4,
    load_average=1.0,
)


def later(**by: float) -> CpuReading:
    """START, ten seconds on; the arguments say by how much the counters have grown."""
    grown = {name: getattr(START, name) + growth for name, growth in by.items()}
    return replace(START, **{"at_s": 110.0, **grown})


class Readings:
    """A meter that has its readings from a list."""

    def __init__(self, *readings):
        self._readings: Iterator = iter(readings)

    def read(self):
        return next(self._readings)

    __call__ = read


def test_competing_load_is_what_is_busy_and_not_ours():
    seen = conditions_between(START, later(busy_s=18.0, own_s=8.0, idle_s=22.0), [], usable=4.0)
    assert seen.competing_load == 1.0
    assert seen.logical_cpus == 4


def test_ticks_that_round_against_us_do_not_make_it_negative():
    seen = conditions_between(START, later(busy_s=7.98, own_s=8.0), [], usable=1.0)
    assert seen.competing_load == 0.0


def test_steal_is_a_share_of_all_time_of_the_cpus():
    seen = conditions_between(START, later(busy_s=10.0, idle_s=8.0, steal_s=2.0), [], usable=2.0)
    assert seen.steal_share == 0.1


def test_switches_per_second():
    assert (
        conditions_between(START, later(involuntary_switches=30), [], 1.0).involuntary_switches_per_s == 3.0
    )


def test_the_clock_at_the_end_over_the_start():
    assert conditions_between(START, later(clock_mhz=-600.0), [], 1.0).frequency_ratio == 0.8


def test_an_interval_of_a_few_ticks_says_nothing_of_load():
    last = replace(later(busy_s=0.1, steal_s=0.01), at_s=100.05)
    seen = conditions_between(START, last, [], 1.0)
    assert (seen.competing_load, seen.steal_share) == (None, None)


def test_a_platform_that_counts_nothing():
    silent = replace(START, steal_s=None, clock_mhz=None, num_throttles=None, load_average=None)
    seen = conditions_between(silent, replace(silent, at_s=110.0), [], 2.5)
    assert seen.logical_cpus == 3
    unknown = (
        seen.steal_share,
        seen.frequency_ratio,
        seen.throttled,
        seen.load_average,
        seen.gpu_clock_ratio,
    )
    assert unknown == (None,) * 5


@pytest.mark.parametrize(
    ("throttles", "gpu", "throttled"),
    [
        (0, [], False),
        (1, [], True),
        (0, [GpuReading(limited=False), GpuReading(limited=True)], True),
        (0, [GpuReading(limited=False), GpuReading(limited=False)], False),
        (0, [GpuReading(limited_s=3.0), GpuReading(limited_s=3.05)], False),  # half a per cent of ten seconds
        (0, [GpuReading(limited_s=3.0), GpuReading(limited_s=8.0)], True),
        (0, [GpuReading(limited_s=3.0)], False),
    ],
)
def test_throttling(throttles, gpu, throttled):
    assert conditions_between(START, later(num_throttles=throttles), gpu, 1.0).throttled is throttled


def test_a_gpu_over_three_looks():
    readings = [
        GpuReading(clock_mhz=345.0, idle=True, temperature_c=40.0, other_processes=0),
        GpuReading(clock_mhz=1980.0, temperature_c=71.0, other_processes=0),
        GpuReading(clock_mhz=1485.0, temperature_c=69.0, other_processes=2),
    ]
    seen = conditions_between(START, later(), readings, 1.0)
    assert seen.gpu_clock_ratio == 0.75
    assert seen.gpu_temperature_c == 71.0
    assert seen.other_gpu_processes == 2


@pytest.mark.parametrize(
    ("on_gpu", "own", "others"),
    [
        (set(), {1}, None),  # the driver shows nothing, though we are there: it shows nothing to containers
        ({1}, {1}, 0),
        ({1, 2}, {1}, 1),
        ({1, 2, 3}, {1, 2}, 1),
        ({901}, {1}, 0),  # other process numbers than ours: one of them must be us
        ({901, 902}, {1}, 1),
    ],
)
def test_other_processes_on_the_gpu(on_gpu, own, others):
    assert count_others(on_gpu, own) == others


def test_the_probe_looks_at_the_start_at_the_end_and_when_asked():
    gpu = Readings(GpuReading(clock_mhz=1000.0), GpuReading(clock_mhz=500.0), None)
    probe = ConditionsProbe(cpu=Readings(START, later(busy_s=5.0)), gpu=gpu)
    probe.start()
    probe.sample()
    seen = probe.finish()
    assert seen is probe.conditions
    assert (seen.competing_load, seen.gpu_clock_ratio) == (0.5, 0.5)


def test_a_probe_can_be_used_again():
    probe = ConditionsProbe(
        cpu=Readings(START, later(busy_s=5.0), START, later(busy_s=20.0)),
        gpu=Readings(GpuReading(clock_mhz=1.0), GpuReading(clock_mhz=2.0), None, None),
    )
    for load, ratio in ((0.5, 0.5), (2.0, None)):
        probe.start()
        seen = probe.finish()
        assert (seen.competing_load, seen.gpu_clock_ratio) == (load, ratio)


def test_finishing_what_was_not_started():
    with pytest.raises(UsageError, match="before start"):
        ConditionsProbe().finish()


def test_the_conditions_are_known_after_an_exception():
    probe = ConditionsProbe()
    with pytest.raises(ZeroDivisionError), probe:
        _ = 1 / 0
    assert probe.conditions is not None


@pytest.mark.measuring
def test_counters_of_this_machine():
    meter = SystemCpuMeter()
    first = meter.read()
    burn(0.3)
    last = meter.read()
    assert last.at_s - first.at_s >= 0.2  # two clocks are never quite one
    assert last.busy_s >= first.busy_s
    assert last.own_s - first.own_s == pytest.approx(0.3, abs=0.2)
    assert last.involuntary_switches >= first.involuntary_switches


@pytest.mark.measuring
def test_cpu_time_of_children_is_ours_while_they_live_and_after():
    meter = SystemCpuMeter()
    first = meter.read()
    child = spinner()
    try:
        wait_for_cpu_time(psutil.Process(child.pid), 0.5)
        assert meter.read().own_s - first.own_s > 0.4
    finally:
        child.kill()
        child.wait()
    assert meter.read().own_s - first.own_s > 0.4


def test_throttle_counters_are_added_up(machine):
    folder = "sys/devices/system/cpu"
    root = machine(
        {
            f"{folder}/cpu0/thermal_throttle/core_throttle_count": "3\n",
            f"{folder}/cpu0/thermal_throttle/package_throttle_count": "2\n",
            f"{folder}/cpu1/thermal_throttle/core_throttle_count": "1\n",
            f"{folder}/cpu1/thermal_throttle/core_throttle_total_time_ms": "900\n",
        }
    )
    assert SystemCpuMeter(root).read().num_throttles == 6


@pytest.mark.measuring
def test_a_competitor_is_seen():
    """Somebody else's process, whatever share of a CPU it gets, is competing load."""
    with detached_spinner() as other:
        seen, share, _ = conditions_beside(other)
    assert share > 0.05
    assert seen.competing_load > 0.8 * share - 0.05


@pytest.mark.measuring
def test_our_own_children_are_not_competition():
    """The same process, started by us."""
    child = spinner()
    try:
        seen, share, busy = conditions_beside(psutil.Process(child.pid))
    finally:
        child.kill()
        child.wait()
    assert share > 0.05
    assert seen.competing_load < busy - 0.8 * share + 0.05


SPIN = "import time\nend = time.monotonic() + {seconds}\nwhile time.monotonic() < end: pass"


def spinner(seconds: float = 60.0) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-S", "-c", SPIN.format(seconds=seconds)])


@contextmanager
def detached_spinner() -> Iterator[psutil.Process]:
    """A busy process whose parent has ended, so that it is nobody's child here."""
    start = (
        "import subprocess, sys\n"
        f"code = {SPIN.format(seconds=60)!r}\n"
        "print(subprocess.Popen([sys.executable, '-S', '-c', code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid)"
    )
    done = subprocess.run([sys.executable, "-S", "-c", start], capture_output=True, text=True, check=True)
    process = psutil.Process(int(done.stdout))
    try:
        yield process
    finally:
        process.kill()


def conditions_beside(process: psutil.Process) -> tuple[Conditions, float, float]:
    """Conditions over a while, CPUs that a process kept busy then, and CPUs that everybody kept busy."""
    wait_for_cpu_time(process, 0.05)
    meter = SystemCpuMeter()
    used = cpu_time(process)
    first, _, last = meter.read(), time.sleep(1.5), meter.read()
    wall = last.at_s - first.at_s
    seen = conditions_between(first, last, [], usable_cpus())
    return seen, (cpu_time(process) - used) / wall, (last.busy_s - first.busy_s) / wall


def cpu_time(process: psutil.Process) -> float:
    return sum(process.cpu_times()[:2])


def wait_for_cpu_time(process: psutil.Process, seconds: float) -> None:
    deadline = time.monotonic() + 60
    while cpu_time(process) < seconds:
        assert time.monotonic() < deadline, "the other process never got to run"
        time.sleep(0.02)


def burn(seconds: float) -> None:
    """Use so much CPU time."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
