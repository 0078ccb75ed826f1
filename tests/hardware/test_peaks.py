"""Measured peaks: the search on known rates, the real thing on the CPU, the cache."""

from __future__ import annotations

import math

import pytest
import torch

from pyrometer.errors import InputError
from pyrometer.hardware import compute_peaks, peak_cache
from pyrometer.hardware.cpu import read_cpu
from pyrometer.hardware.peak_cache import cached_peaks, load_cached, save_cached
from pyrometer.hardware.peak_search import measure_peaks, probes_for
from pyrometer.hardware.peaks import Peaks
from pyrometer.hardware.rig import Rig, climb, repeat
from pyrometer.hardware.timing import best_time, timer_for
from pyrometer.record import from_json, to_json

CPU = torch.device("cpu")


class World:
    """A clock that advances as things are measured, and a machine with known rates."""

    def __init__(self, rates):
        self.now_s = 0.0
        self.rates = rates
        self.tried = []

    def time_at(self, size):
        self.tried.append(size)
        if isinstance(self.rates[size], Exception):
            raise self.rates[size]
        call_s = size / self.rates[size]
        self.now_s += 4 * call_s
        return call_s

    def climb(self, budget_s):
        return climb(self.time_at, float, list(self.rates), budget_s, now=lambda: self.now_s)


@pytest.mark.parametrize(
    ("rates", "budget_s", "found", "tried"),
    [
        ({1: 1.0, 2: 2.0, 4: 3.0, 8: 4.0}, 1e9, 8, [1, 2, 4, 8]),
        ({1: 1.0, 2: 2.0, 4: 2.01, 8: 2.0, 16: 9.0}, 1e9, 4, [1, 2, 4, 8]),
        ({1: 1.0, 2: 0.1, 4: 3.0, 8: 3.0, 16: 3.0}, 1e9, 4, [1, 2, 4, 8, 16]),  # one disturbance is forgiven
        ({1: 5.0, 2: 4.0, 4: 3.0, 8: 9.0}, 1e9, 1, [1, 2, 4]),
        ({1: 1.0, 2: 2.0, 4: 4.0, 8: 8.0}, 13.0, 2, [1, 2]),  # each takes 4 s
        ({1: 1.0, 2: 2.0}, 0.0, 1, [1]),
        ({1: 1.0, 2: 2.0, 4: RuntimeError("out of memory"), 8: 9.0}, 1e9, 2, [1, 2, 4]),
    ],
)
def test_the_climb(rates, budget_s, found, tried):
    world = World(rates)
    assert world.climb(budget_s) == (found, rates[found])
    assert world.tried == tried


def test_a_device_that_cannot_do_the_smallest_size_says_so():
    with pytest.raises(RuntimeError, match="not implemented"):
        World({1: RuntimeError("not implemented for Half"), 2: 1.0}).climb(1e9)


def test_repeating_ends_with_the_budget():
    world = World({8: 8.0})
    values = repeat(lambda: world.time_at(8), 9.0, now=lambda: world.now_s)
    assert values == [1.0, 1.0]
    assert len(repeat(lambda: 1.0, 1e9)) == 4
    assert len(repeat(lambda: world.time_at(8), 0.0, now=lambda: world.now_s)) == 1


@pytest.mark.parametrize("seconds", [1e-7, 3e-5, 2e-2])
def test_the_best_time_of_calls_of_any_length(seconds):
    """On a clock of our own: a call takes longer the first time, and now and then for no reason of its own."""
    calls = []

    def batch_s(_call, num_calls):
        calls.append(num_calls)
        return num_calls * seconds * (10 if len(calls) == 1 else 1 + 0.3 * (len(calls) % 3))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyrometer.hardware.timing._host_batch_s", batch_s)
        assert best_time(lambda: None, duration_s=0.01) == pytest.approx(seconds)
    assert max(calls) * seconds >= 1e-4 or max(calls) == 1


@pytest.fixture(scope="module")
def quick() -> Peaks:
    return measure_peaks(CPU, budget_s=0.5)


def test_this_cpu(quick):
    assert quick.device == "cpu"
    assert set(quick.matmul_flop_per_s) | {"int8"} == {"float32", "bfloat16", "float16", "int8"}
    assert "float32" in quick.conv_flop_per_s
    assert {"memory"} <= set(quick.copy_bytes_per_s) <= {"memory", "l2", "l3"}
    assert set(quick.cost_s) == {"launch"}
    for group in (quick.matmul_flop_per_s, quick.conv_flop_per_s, quick.copy_bytes_per_s, quick.cost_s):
        for peak in group.values():
            assert 0 < peak.best < math.inf
            assert peak.num_timings >= 1
            assert peak.work
    assert quick.matmul_flop_per_s["float32"].best >= quick.matmul_flop_per_s["float32"].median
    assert quick.cost_s["launch"].best <= quick.cost_s["launch"].median
    assert 1e-8 < quick.cost_s["launch"].best < 1e-2
    assert quick.conditions is not None
    assert all(reason for reason in quick.skipped.values())


@pytest.mark.measuring
def test_the_peaks_are_plausible(quick):
    """Bounds between which every processor lies, also one that shares its cores with others."""
    assert 1e7 < quick.matmul_flop_per_s["float32"].best < 1e15
    assert 1e7 < quick.copy_bytes_per_s["memory"].best < 1e13
    # One thread copies here, so a neighbour on another core cannot stop it.
    if "l2" in quick.copy_bytes_per_s:
        assert quick.copy_bytes_per_s["l2"].best > 0.5 * quick.copy_bytes_per_s["memory"].best
    assert quick.threads == torch.get_num_threads()


@pytest.mark.measuring
def test_the_budget_bounds_the_search(quick):
    """Each kind of work is tried at least once; all sizes of all of them would take the better part of an hour."""
    assert quick.elapsed_s < 60 * 0.5


def test_float32_on_a_gpu_is_measured_with_and_without_tf32():
    names = [(group, name) for group, name, _ in probes_for("cuda") if name in {"float32", "tf32"}]
    assert names == [(group, name) for group in ("conv", "matmul") for name in ("float32", "tf32")]
    assert "tf32" not in [name for _, name, _ in probes_for("cpu")]


def test_a_record_survives_its_file(quick):
    assert from_json(Peaks, to_json(quick)) == quick


def test_nothing_of_the_callers_is_changed():
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        measure_peaks(CPU, timer=lambda call: float(bool(call())) or 1.0, budget_s=0.01)
        assert torch.is_autocast_enabled("cpu")
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()
    assert torch.equal(torch.rand(4), expected)


def test_the_timer_is_the_callers():
    """With a timer that says that everything takes a millisecond, a rate is the work times a thousand."""
    timed = []

    def timer(call):
        timed.append(call)
        return 1e-3

    peaks = measure_peaks(CPU, timer=timer, budget_s=1e-9)
    assert peaks.cost_s["launch"].best == 1e-3
    assert peaks.matmul_flop_per_s["float32"].best == 2 * 256**3 * 1e3
    assert peaks.conv_flop_per_s["float32"].best == 2 * 64 * 56**2 * 64 * 9 * 1e3
    assert len(timed) > 10


def test_what_a_torch_cannot_do_is_left_out_and_said(monkeypatch):
    monkeypatch.delattr(torch, "_int_mm")
    peaks = measure_peaks(CPU, timer=lambda _call: 1e-3, budget_s=1e-9)
    assert "int8" not in peaks.matmul_flop_per_s
    assert peaks.skipped["matmul int8"] == "this torch has no integer matrix product"


def test_a_cache_of_unknown_size_is_left_out_and_said(monkeypatch, tmp_path):
    monkeypatch.setattr("pyrometer.hardware.peak_search.read_cpu", lambda: read_cpu(tmp_path))

    peaks = measure_peaks(CPU, timer=lambda _call: 1e-3, budget_s=1e-9)
    assert set(peaks.copy_bytes_per_s) == {"memory"}
    assert peaks.skipped["copy l3"] == "the size of l3 is not known"


def test_a_machine_with_too_little_memory():
    rig = Rig(device=CPU, timer=timer_for(CPU, 0.001), memory_bytes=1000, cache_bytes={})
    for measure in (compute_peaks.matmul_peak, compute_peaks.conv_peak):
        with pytest.raises(RuntimeError, match="too little free memory"):
            measure(torch.float32, rig, 1.0)


@pytest.mark.parametrize(
    ("device", "budget_s", "message"),
    [("meta", 1.0, "legal are cpu and cuda"), ("cpu", 0.0, "must be positive"), ("cpu", -3.0, "got -3.0 s")],
)
def test_bad_arguments(device, budget_s, message):
    with pytest.raises(InputError, match=message):
        measure_peaks(torch.device(device), budget_s=budget_s)


def test_peaks_are_cached_per_fingerprint_and_device(quick, tmp_path):
    folder = tmp_path / "cache"
    assert load_cached("abc", folder) is None
    path = save_cached(quick, "abc", folder)
    assert path.parent == folder
    assert load_cached("abc", folder) == quick
    assert load_cached("abd", folder) is None
    assert load_cached("abc", folder, device="cuda:0") is None
    assert list(folder.iterdir()) == [path]


@pytest.mark.parametrize("content", [b"", b"{", b'{"device": "cpu"}', b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_replaced_and_said(quick, tmp_path, monkeypatch, content):
    monkeypatch.setattr(peak_cache, "measure_peaks", lambda *_, **__: quick)
    path = save_cached(quick, "abc", tmp_path)
    path.write_bytes(content)
    with pytest.raises(
        InputError, match=r"peaks-abc-cpu\.json: cannot be read .* delete it to measure again"
    ):
        load_cached("abc", tmp_path)
    measured = cached_peaks(CPU, "abc", tmp_path, budget_s=0.01)
    assert "cannot be read as saved peaks" in measured.skipped["cache"]
    saved = load_cached("abc", tmp_path)
    assert saved.matmul_flop_per_s == measured.matmul_flop_per_s
    assert "cache" not in saved.skipped


def test_peaks_are_measured_once(tmp_path):
    first = cached_peaks(CPU, "abc", tmp_path / "cache", budget_s=0.01)
    assert cached_peaks(CPU, "abc", tmp_path / "cache", budget_s=0.01) == first


def test_a_folder_that_cannot_be_written_costs_only_the_cache(quick, tmp_path, monkeypatch):
    monkeypatch.setattr(peak_cache, "measure_peaks", lambda *_, **__: quick)
    (tmp_path / "cache").write_text("a file, where a folder should be")
    peaks = cached_peaks(CPU, "abc", tmp_path / "cache", budget_s=0.01)
    assert peaks.matmul_flop_per_s
    assert "the peaks cannot be saved" in peaks.skipped["cache"]


def test_a_failed_write_leaves_the_old_file(quick, tmp_path, monkeypatch):
    save_cached(quick, "abc", tmp_path)
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        save_cached(quick, "abc", tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    assert load_cached("abc", tmp_path) == quick
