"""Two snapshots are compared site by site."""

from __future__ import annotations

from pyrometer.memory.snapshots.difference import diff_snapshots

MIB = 1 << 20


def program(files, sizes, text=""):
    recorder = files.recorder(text)
    for i, (stack, size) in enumerate(sizes):
        recorder.alloc(str(i), size * MIB, stack)
    return files.report(recorder)


def test_who_grew_shrank_came_and_went(files):
    before = program(files, [("user", 20), ("forward", 40), ("inputs", 12), ("other", 14)])
    after = program(files, [("user", 60), ("forward", 30), ("optimizer_state", 24), ("other", 14)])
    diff = diff_snapshots(before, after)
    assert [(change.site, change.change, change.difference_bytes // MIB) for change in diff.at_peak] == [
        ("/home/me/train.py:7", "grew", 40),
        ("/home/me/train.py:33", "new", 24),
        ("/home/me/data.py:3", "gone", -12),
        ("/home/me/model.py:12", "shrank", -10),
    ]
    assert diff.peak_difference_bytes == 42 * MIB
    by_category = {category.category: category.difference_bytes // MIB for category in diff.categories}
    assert by_category == {"unknown": 40, "temporaries": -10, "inputs": -12, "optimizer": 24}
    assert diff.notes == []


def test_a_snapshot_does_not_differ_from_itself(files, training):
    report = files.report(training(files.recorder()))
    diff = diff_snapshots(report, report)
    assert diff.at_peak == diff.at_end == []
    assert diff.peak_difference_bytes == diff.reserved_difference_bytes == 0
    assert diff.fragmentation_at_peak.unused_difference == 0


def test_what_cannot_be_compared_is_told(files):
    before = program(files, [("user", 20)])
    recorder = files.recorder("expandable_segments:True")
    recorder.alloc("a", 20 * MIB)
    after = files.report(recorder.raw() | {"device_traces": []})
    notes = diff_snapshots(before, after).notes
    assert "no history" in notes[0]
    assert "settings differ" in notes[1]


def test_fragmentation_is_compared(files):
    recorder = files.recorder()
    for i in range(8):
        recorder.alloc(str(i), 5 * MIB)
    before = files.report(recorder)
    recorder.free("0", "2", "4")
    diff = diff_snapshots(before, files.report(recorder))
    assert diff.fragmentation_at_end.inactive_split_difference_bytes == 15 * MIB
    assert diff.fragmentation_at_end.unused_difference == 15 / 40
