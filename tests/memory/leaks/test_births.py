"""What is seen of storages, and that seeing changes nothing."""

from __future__ import annotations

import contextlib
import gc
import threading
import weakref

import numpy as np
import pytest
import torch
from torch import nn

from pyrometer.memory.leaks.births import BirthRecorder, MadeAt, MadeUnseen, live_tensors
from pyrometer.workload.whereabouts.lines import site_of


def watched(step, steps=3):
    recorder = BirthRecorder()
    recorder.scan(live_tensors(), first=True)
    before = recorder.live_bytes
    for _ in range(steps):
        with recorder.recording():
            step()
        recorder.end_step()
    recorder.live_bytes -= before
    return recorder


def test_a_storage_is_known_by_its_line_operator_and_step():
    kept = []
    recorder = watched(lambda: kept.append(torch.ones(256)))
    assert [storage.step for storage in recorder.grown] == [0, 1, 2]
    site = recorder.grown[0].site
    assert isinstance(site, MadeAt)
    assert site.operator == "aten.ones.default"
    assert "kept.append(torch.ones(256))" in site_of(site.point).source


def test_what_dies_within_its_step_is_forgotten():
    recorder = watched(lambda: torch.ones(256) + 1)
    assert recorder.grown == []
    assert recorder.live_bytes == 0


def test_a_death_is_noted_with_its_step():
    last = {}
    recorder = watched(lambda: last.update(x=torch.ones(256)))
    assert [(storage.step, storage.died) for storage in recorder.grown] == [(0, 1), (1, 2), (2, None)]
    assert recorder.live_bytes == 1024


def test_views_and_in_place_operators_make_nothing():
    base = torch.zeros(64)
    kept = []

    def step():
        base.add_(1)
        kept.append(base.view(8, 8).t()[2:])

    assert watched(step).grown == []


def test_a_storage_that_grows_in_place_is_born_again():
    buffer = torch.zeros(0)
    recorder = watched(lambda: buffer.resize_(buffer.numel() + 256))
    assert [storage.nbytes for storage in recorder.grown if storage.died is None] == [3 * 1024]


def test_what_autograd_saves_is_seen():
    weight = torch.ones(256, requires_grad=True)
    kept = []
    recorder = watched(lambda: kept.append((weight * 2).exp().sum()))
    alive = [storage for storage in recorder.grown if storage.died is None]
    assert sorted(storage.nbytes for storage in alive) == [4, 4, 4, 1024, 1024, 1024]


def test_gradients_of_the_backward_pass_are_seen_at_the_line_that_asked_for_it():
    model = nn.Linear(16, 16, bias=False)

    def step():
        model.zero_grad()
        model(torch.ones(2, 16)).sum().backward()

    recorder = watched(step)
    (alive,) = [storage for storage in recorder.grown if storage.died is None]
    assert alive.nbytes == 1024
    assert "backward()" in site_of(alive.site.point).source


def test_a_scan_finds_what_another_thread_made():
    kept = []
    recorder = BirthRecorder()
    recorder.scan(live_tensors(), first=True)
    for _ in range(3):
        with recorder.recording():
            thread = threading.Thread(target=lambda: kept.append(torch.ones(333)))
            thread.start()
            thread.join()
        recorder.scan(live_tensors())
        recorder.end_step()
    assert [(s.step, s.site) for s in recorder.grown] == [(n, MadeUnseen("float32", 1332)) for n in range(3)]


def test_a_scan_finds_arrays_and_counts_shared_memory_once():
    recorder = BirthRecorder()
    recorder.scan(live_tensors(), first=True)
    array = np.zeros(777, dtype=np.float32)
    kept = [torch.from_numpy(array) for _ in range(5)]
    recorder.scan(live_tensors())
    recorder.end_step()
    assert [storage.nbytes for storage in recorder.grown] == [3108]
    assert len(kept) == 5


def test_what_was_there_before_is_not_born():
    data = [torch.ones(64) for _ in range(5)]
    recorder = BirthRecorder()
    recorder.scan(live_tensors(), first=True)
    kept = []
    for tensor in data:
        with recorder.recording():
            kept.append(tensor[:8])
        recorder.scan(live_tensors())
        recorder.end_step()
    assert recorder.grown == []


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_tensors_without_memory_or_storage_do_no_harm():
    def step():
        torch.ones(4, device="meta") + 1
        torch.eye(4).to_sparse().coalesce()
        torch.eye(4).to_sparse_csr()
        if torch.backends.mkldnn.is_available():
            torch.ones(4).to_mkldnn()

    recorder = watched(step)
    recorder.scan(live_tensors())
    assert recorder.grown == []


def test_sparse_tensors_are_counted_by_their_parts():
    kept = []
    recorder = watched(lambda: kept.append(torch.eye(8).to_sparse()), steps=1)
    assert sum(storage.nbytes for storage in recorder.grown) == 8 * 4 + 2 * 8 * 8


def test_the_recorder_keeps_nothing_alive():
    module = nn.Linear(8, 8)
    reference, kept = weakref.ref(module), []
    recorder = BirthRecorder()
    recorder.scan(live_tensors(), first=True)
    with recorder.recording():
        kept.append(module(torch.ones(1, 8)))
    recorder.end_step()
    storage = weakref.ref(kept[0].untyped_storage())
    kept.clear()
    del module
    gc.collect()
    assert reference() is None
    assert storage() is None
    assert all(one.get() is None for one in recorder.grown)


def test_dead_storages_can_be_forgotten_for_good():
    last = {}
    recorder = watched(lambda: last.update(x=torch.ones(256)), steps=5)
    recorder.forget_dead()
    assert [storage.step for storage in recorder.grown] == [4]
    recorder.close()
    last.clear()
    assert recorder.grown == []


def test_the_mode_is_left_when_the_step_raises():
    recorder = BirthRecorder()

    def step():
        torch.ones(4)
        raise ValueError

    with contextlib.suppress(ValueError), recorder.recording():
        step()
    kept = torch.ones(4)
    recorder.end_step()
    assert kept.sum() == 4
    assert recorder.grown == []
