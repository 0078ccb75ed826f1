"""The search itself: it holds nothing, stops in time, and leaves out who asks."""

from __future__ import annotations

import gc
import itertools
import time
import weakref

import pytest
import torch

from pyrometer.errors import InputError
from pyrometer.memory.holders.find import find_holders


class Batch:
    def __init__(self):
        self.x = torch.randn(3)


def test_nothing_is_held_afterwards():
    gc.disable()
    try:
        kept = {"batch": Batch()}
        reference = weakref.ref(kept["batch"])
        find_holders([kept["batch"].x, torch.randn(2)])
        kept.clear()
        assert reference() is None
    finally:
        gc.enable()


def test_variables_of_running_functions_die_as_before_and_no_garbage_is_left_for_the_collector():
    def function():
        batch = Batch()
        gc.collect()
        find_holders([torch.randn(2)])
        reference = weakref.ref(batch)
        del batch
        return reference(), gc.collect()

    assert function() == (None, 0)


def test_locals_that_the_user_asked_for_keep_what_they_had():
    value = torch.randn(2)
    mine = locals()
    find_holders([value])
    assert mine["value"] is value


def test_graphs_die_as_before():
    w = torch.ones(3, requires_grad=True)
    losses = [torch.exp(w).sum()]
    saved = losses[0].grad_fn.next_functions[0][0]._raw_saved_result.data
    storage = weakref.ref(saved.untyped_storage())
    del saved
    assert find_holders([storage()])[0].path == "losses[…]"
    losses.clear()
    assert storage() is None


def test_nobody_but_the_asker_is_nobody_and_lists_of_the_asker_do_not_count():
    mine = [torch.randn(2)]
    assert find_holders([mine[0]])[0].path == "mine[…]"
    assert find_holders([mine[0], torch.randn(2)], ignore=[mine]) == [None, None]
    assert find_holders([]) == []


def test_one_answer_per_tensor_in_their_order():
    first, second = [torch.randn(2)], {"b": torch.randn(2)}
    holders = find_holders([second["b"], torch.randn(1), first[0], second["b"]])
    assert [holder and holder.path for holder in holders] == ['second["b"]', None, "first[…]", 'second["b"]']


def test_storages_may_be_asked_for():
    kept = [torch.randn(8)[2:4]]
    assert find_holders([kept[0].untyped_storage()])[0].path == "kept[…]"


def test_a_sparse_tensor_is_found_by_itself_and_by_its_values():
    kept = [torch.eye(2).to_sparse()]
    values = [kept[0].values() if kept[0].is_coalesced() else kept[0]._values()]
    assert find_holders([kept[0]], ignore=[values])[0].path == "kept[…]"


def test_anything_else_is_refused():
    with pytest.raises(InputError, match="tensors: got list; legal are tensors"):
        find_holders([[1]])


def test_out_of_time_is_said_and_not_guessed():
    kept = [torch.randn(2)]
    ticks = itertools.count()
    holder = find_holders([kept[0]], budget_s=0.5, clock=lambda: next(ticks))[0]
    assert (holder.root, holder.path) == ("not decided", "not found within 0.5 s")


def test_the_collector_and_the_settings_are_as_before():
    kept = [torch.randn(1)]
    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        try:
            find_holders([kept[0]])
            assert gc.isenabled() is enabled
        finally:
            gc.enable()


def test_many_tensors_cost_little_more_than_one():
    kept = {number: torch.zeros(1) for number in range(1000)}
    wanted = list(kept.values())

    def seconds(tensors):
        start = time.process_time()
        find_holders(tensors, ignore=[wanted])
        return time.process_time() - start

    one, many = min(seconds(wanted[:1]) for _ in range(2)), seconds(wanted)
    assert many < 100 * one  # one walk each would be 1000 times as much


def test_threads_that_change_things_meanwhile_do_not_disturb():
    import threading

    stop = threading.Event()
    churn = {}

    def work():
        while not stop.is_set():
            for number in range(100):
                churn[number] = [object()]
            churn.clear()
            time.sleep(0)

    thread = threading.Thread(target=work, name="churn")
    thread.start()
    kept = [torch.randn(2)]
    try:
        assert all(find_holders([kept[0]])[0].path == "kept[…]" for _ in range(5))
    finally:
        stop.set()
        thread.join()
