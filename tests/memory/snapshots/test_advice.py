"""Advice is given where it is due, its gain is real, and healthy programs get none."""

from __future__ import annotations

import random

import pytest

MIB = 1 << 20


def slugs(report):
    return [advice.slug for advice in report.advice]


def advice(report, slug):
    (found,) = [one for one in report.advice if one.slug == slug]
    return found


def text_of(found):
    return found.rewrite.removeprefix("PYTORCH_ALLOC_CONF=").split(" ")[0]


def rerun(files, program, text, **more):
    """The same program with the advised settings, from its start, not by way of a snapshot."""
    recorder = files.recorder(text, **more)
    program(recorder)
    return recorder


def fragmenting(recorder):
    """Large blocks of which a survivor keeps the rest from being used again."""
    for i in range(30):
        recorder.alloc("large", 200 * MIB)
        recorder.free("large")
        recorder.alloc(f"survivor{i}", 110 * MIB)


def many_lengths(recorder):
    """Sequences of ever other length, nothing freed until the next ones are there."""
    rng = random.Random(3)
    for i in range(120):
        size = rng.randrange(33, 62) * MIB + rng.randrange(100) * 1000
        recorder.alloc(f"x{i}", size)
        if i >= 3:
            recorder.free(f"x{i - 3}")


def two_phases(recorder):
    """Training leaves segments in the cache that evaluation cannot use."""
    for step in range(4):
        for i in range(10):
            recorder.alloc(f"a{i}", 40 * MIB, "forward")
        recorder.free(*[f"a{i}" for i in range(10)])
        del step
    for step in range(4):
        for i in range(4):
            recorder.alloc(f"e{i}", 100 * MIB, "other")
        recorder.free(*[f"e{i}" for i in range(4)])
        del step


def flush_storm(recorder):
    """Steps of five sorts whose blocks do not fit each other, each with one block that outlives it, on a tight device."""
    recorder.alloc("weights", 100 * MIB)
    before = None
    for step in range(24):
        count, size = [(8, 46), (5, 91), (3, 102), (10, 41), (5, 100)][step % 5]
        names = [f"a{step}.{i}" for i in range(count)]
        for name in names:
            assert recorder.alloc(name, size * MIB)
        recorder.free(*names[:-1])
        if before:
            recorder.free(before)
        before = names[-1]


def emptying(recorder):
    """The cache emptied in each step."""
    recorder.alloc("weights", 100 * MIB)
    for _ in range(6):
        for i in range(5):
            recorder.alloc(f"a{i}", 30 * MIB)
        recorder.free(*[f"a{i}" for i in range(5)])
        recorder.empty_cache()


def test_a_healthy_program_gets_no_advice(files, training):
    for text in ("", "expandable_segments:True", "max_split_size_mb:64"):
        assert slugs(files.report(training(files.recorder(text), steps=10))) == []


def test_the_simulation_repeats_what_was_recorded_exactly(files, training):
    programs = (training, fragmenting, many_lengths, two_phases, emptying)
    for text in ("", "expandable_segments:True", "max_split_size_mb:32", "roundup_power2_divisions:4"):
        for program in programs:
            recorder = files.recorder(text)
            program(recorder)
            (device,) = files.report(recorder).devices
            assert device.simulation.error == 0, (text, program)
            assert device.simulation.simulated_peak_reserved_bytes == recorder.allocator.peak_reserved_bytes


def test_expandable_segments_against_fragmentation(files):
    recorder = rerun(files, fragmenting, "")
    found = advice(files.report(recorder), "expandable-segments")
    better = rerun(files, fragmenting, text_of(found))
    drop = recorder.allocator.peak_reserved_bytes - better.allocator.peak_reserved_bytes
    assert found.saves_bytes == drop > 500 * MIB
    assert "between blocks in use" in found.why
    assert "simulated allocator" in found.gain.method
    assert slugs(files.report(better)) == []


def test_expandable_segments_serve_a_request_that_failed(files):
    def program(recorder):
        for i in range(10):
            recorder.served = recorder.alloc("large", 200 * MIB)
            if not recorder.served:
                return
            recorder.free("large")
            recorder.alloc(f"survivor{i}", 110 * MIB)

    recorder = rerun(files, program, "", capacity_mib=1700)
    assert not recorder.served
    found = advice(files.report(recorder), "expandable-segments")
    assert "1 of 1 failed request would have been served" in found.effect
    assert "the 200 MiB request failed with 720 MiB free in 8 blocks of at most 90.0 MiB" in found.why
    assert rerun(files, program, text_of(found), capacity_mib=1700).served


def test_expandable_segments_are_not_advised_where_they_are_on(files):
    report = files.report(rerun(files, fragmenting, "expandable_segments:True"))
    assert not {"expandable-segments", "max-split-size"} & set(slugs(report))


def test_a_limit_to_splitting_where_survivors_split_large_blocks(files):
    recorder = rerun(files, fragmenting, "")
    found = advice(files.report(recorder), "max-split-size")
    better = rerun(files, fragmenting, text_of(found))
    drop = recorder.allocator.peak_reserved_bytes - better.allocator.peak_reserved_bytes
    assert found.saves_bytes == drop > 1000 * MIB
    assert "max-split-size" not in slugs(files.report(better))


def test_rounding_up_for_many_lengths(files):
    recorder = rerun(files, many_lengths, "")
    found = advice(files.report(recorder), "roundup-power2-divisions")
    better = rerun(files, many_lengths, text_of(found))
    assert (
        found.saves_bytes == recorder.allocator.peak_reserved_bytes - better.allocator.peak_reserved_bytes > 0
    )
    assert "sizes were asked for" in found.why
    assert "roundup-power2-divisions" not in slugs(files.report(better))


def test_one_empty_cache_between_two_phases(files):
    recorder = rerun(files, two_phases, "")
    found = advice(files.report(recorder), "empty-cache-once")
    assert found.saves_bytes == 400 * MIB
    assert "before /home/me/evaluate.py:9 allocates" in found.rewrite

    def changed(recorder):
        original, emptied = recorder.alloc, []

        def alloc(name, size, stack="user", **more):
            if stack == "other" and not emptied:
                emptied.append(True)
                recorder.empty_cache()
            return original(name, size, stack, **more)

        recorder.alloc = alloc
        two_phases(recorder)

    better = rerun(files, changed, "")
    assert recorder.allocator.peak_reserved_bytes - better.allocator.peak_reserved_bytes == found.saves_bytes
    assert slugs(files.report(better)) == []


def test_collection_against_flush_storms(files):
    recorder = rerun(files, flush_storm, "", capacity_mib=780)
    assert recorder.allocator.num_retries >= 5
    report = files.report(recorder)
    found = advice(report, "garbage-collection-threshold")
    better = rerun(files, flush_storm, text_of(found), capacity_mib=780)
    assert 2 * better.allocator.num_retries <= recorder.allocator.num_retries
    assert "the device refused" in found.why
    assert "garbage-collection-threshold" not in slugs(files.report(better))


def test_emptying_the_cache_in_each_step_is_advised_against(files):
    recorder = rerun(files, emptying, "")
    found = advice(files.report(recorder), "no-empty-cache")
    assert "emptied 6 times" in found.why

    def without(recorder):
        recorder.empty_cache = lambda: None
        emptying(recorder)

    better = rerun(files, without, "")
    assert better.allocator.peak_reserved_bytes == recorder.allocator.peak_reserved_bytes
    assert better.allocator.num_device_allocs == 6 < recorder.allocator.num_device_allocs
    assert slugs(files.report(better)) == []


def test_emptying_the_cache_where_it_helps_is_let_be(files):
    def program(recorder):
        for step in range(5):
            for i in range(8):
                recorder.alloc(f"a{i}", (20 + 30 * (step % 2)) * MIB)
            recorder.free(*[f"a{i}" for i in range(8)])
            recorder.empty_cache()

    assert "no-empty-cache" not in slugs(files.report(rerun(files, program, "")))


def test_smaller_steps_where_rounding_costs_much(files):
    def program(recorder):
        for i in range(20):
            recorder.alloc(f"a{i}", 33 * MIB)

    recorder = rerun(files, program, "roundup_power2_divisions:2")
    found = advice(files.report(recorder), "less-rounding")
    better = rerun(files, program, text_of(found))
    assert (
        found.saves_bytes == recorder.allocator.peak_reserved_bytes - better.allocator.peak_reserved_bytes > 0
    )


def test_memory_that_is_simply_full_is_not_fragmentation(files):
    recorder = files.recorder(capacity_mib=500)
    for i in range(9):
        recorder.alloc(f"a{i}", 50 * MIB)
    recorder.alloc("b", 60 * MIB)
    report = files.report(recorder)
    assert slugs(report) == ["not-fragmentation"]
    assert report.advice[0].gain is None


def test_a_limit_for_the_process_is_recognised(files):
    recorder = files.recorder(capacity_mib=500)
    for i in range(9):
        recorder.alloc(f"a{i}", 50 * MIB)
    recorder.alloc("b", 60 * MIB)
    recorder.events[-1]["device_free"] = 900 * MIB
    found = advice(files.report(recorder), "per-process-fraction")
    assert "1 of 1 failed request would have been served" in found.effect


def test_other_processes_are_recognised_when_the_device_is_known(files):
    recorder = files.recorder(capacity_mib=500)
    for i in range(9):
        recorder.alloc(f"a{i}", 50 * MIB)
    recorder.alloc("b", 60 * MIB)
    assert "other-process" not in slugs(files.report(recorder))
    assert "other-process" not in slugs(files.report(recorder, device_total_bytes=700 * MIB))
    found = advice(files.report(recorder, device_total_bytes=8 << 30), "other-process")
    assert "belong to other processes" in found.why


def test_freed_blocks_that_wait_for_streams_are_told(files):
    recorder = files.recorder()
    recorder.alloc("x", 100 * MIB)
    for i in range(4):
        recorder.alloc(f"a{i}", 30 * MIB)
        recorder.free(f"a{i}", pending=True)
        recorder.live.pop(f"a{i}")
    recorder.alloc("y", 100 * MIB)
    assert "pending-free" in slugs(files.report(recorder))


def test_settings_that_are_there_already_are_kept(files):
    recorder = rerun(files, fragmenting, "roundup_power2_divisions:1,max_non_split_rounding_mb:30")
    assert text_of(advice(files.report(recorder), "expandable-segments")) == (
        "roundup_power2_divisions:1,max_non_split_rounding_mb:30,expandable_segments:True"
    )


def test_no_figure_is_given_where_the_simulation_misses_the_record(files):
    recorder = rerun(files, fragmenting, "")
    raw = recorder.raw()
    for segment in raw["segments"]:
        segment["address"] += 1 << 40  # of another time: the file contradicts itself
    raw["segments"] += [{"device": 0, "address": 1 << 45, "total_size": 4 << 30, "stream": 0, "blocks": []}]
    report = files.report(raw)
    assert not report.devices[0].simulation.trusted
    assert report.advice == []


@pytest.mark.parametrize("limit", [300, 1000])
def test_long_histories_are_simulated_around_what_matters(files, training, monkeypatch, limit):
    monkeypatch.setattr("pyrometer.memory.snapshots.allocator.replay.MAX_EVENTS", limit)
    recorder = training(files.recorder(), steps=30)
    (device,) = files.report(recorder).devices
    assert device.simulation.events <= limit + 100
    assert abs(device.simulation.error) < 0.15


def test_a_private_pool_is_simulated_apart(files):
    recorder = files.recorder()
    recorder.alloc("a", 30 * MIB)
    recorder.free("a")
    recorder.alloc("graph", 30 * MIB, pool=3)
    (device,) = files.report(recorder).devices
    assert device.simulation.simulated_peak_reserved_bytes == 60 * MIB


def test_the_capacity_binds_the_simulation(files):
    recorder = rerun(files, flush_storm, "", capacity_mib=780)
    report = files.report(recorder)
    assert report.retries == recorder.allocator.num_retries
    assert report.devices[0].capacity_bytes >= 780 * MIB
