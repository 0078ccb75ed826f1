"""Clocks of the host, on readings that are given."""

from __future__ import annotations

from types import SimpleNamespace

from pyrometer.bench import clock


def test_a_patient_clock_stands_still_while_others_have_the_processor(monkeypatch):
    now = {"wall": 0, "queued": 0}
    readings = SimpleNamespace(perf_counter_ns=lambda: now["wall"], process_time_ns=lambda: 0)
    monkeypatch.setattr(clock, "time", readings)
    monkeypatch.setattr(clock, "queued_ns", lambda: now["queued"])
    patient = clock.PatientClock()
    now.update(wall=1000, queued=600)
    assert patient.host_ns() == 400
    now.update(wall=2000, queued=1600)
    assert patient.host_ns() == 400
    now.update(wall=8000, queued=7900)
    assert patient.host_ns() == 8000 // patient.MOST, "but not without end"
