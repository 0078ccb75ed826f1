from __future__ import annotations

import pytest

from pyrometer.loading.verdict import LoadingFigures, classify, sentence

STEP = {"has_loader": True, "num_workers": 2, "step_s": 0.1}


@pytest.mark.parametrize(
    ("verdict", "changes"),
    [
        ("no-loader", {"has_loader": False, "num_workers": 0, "data_s": 0.05}),
        ("serial", {"num_workers": 0, "data_s": 0.05}),
        ("healthy", {"num_workers": 0, "data_s": 0.001}),
        ("healthy", {"data_s": 0.001, "worker_busy": 0.4}),
        ("balanced", {"data_s": 0.001, "worker_busy": 0.95}),
        ("starved-steady", {"data_s": 0.05, "worker_busy": 0.99}),
        ("starved-steady", {"data_s": 0.05, "worker_busy": None, "occupancy": 0.01}),
        ("bursty", {"data_s": 0.05, "worker_busy": 0.5}),
        ("bursty", {"data_s": 0.05, "worker_busy": None, "occupancy": 0.6}),
        ("handover-bound", {"data_s": 0.05, "receive_s": 0.04, "worker_busy": 0.2}),
        ("slow-start", {"data_s": 0.001, "first_batch_s": 2.0, "starts_anew": True, "epoch_batches": 20}),
        ("healthy", {"data_s": 0.001, "first_batch_s": 2.0, "starts_anew": False, "epoch_batches": 20}),
        ("healthy", {"data_s": 0.001, "first_batch_s": 2.0, "starts_anew": True, "epoch_batches": 5000}),
    ],
)
def test_each_pattern_has_its_verdict(verdict, changes):
    figures = LoadingFigures(**{**STEP, **changes})
    assert classify(figures) == verdict
    assert len(sentence(figures)) > 20


def test_the_sentence_says_what_free_data_would_bring():
    text = sentence(LoadingFigures(**STEP, data_s=0.05, worker_busy=1.0))
    assert "50.0 ms of 100 ms per step (50.0 %)" in text
    assert "2.00× faster" in text
