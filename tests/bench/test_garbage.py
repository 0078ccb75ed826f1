"""Collections of what is new alone: what is hidden, what is shown, and what others froze."""

from __future__ import annotations

import gc
import weakref

import pytest

from pyrometer.bench.garbage import hiding, in_sight, settled


class Node:
    """Something that can lie in a cycle."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def nothing_frozen():
    gc.unfreeze()
    yield
    gc.unfreeze()
    gc.freeze()  # as the tests of a file begin


def in_heap(one: object) -> bool:
    return any(other is one for other in gc.get_objects())


def test_garbage_of_before_is_collected_once_and_that_of_inside_by_each_collection():
    before = weakref.ref(Node())
    with settled():
        assert before() is None
        inside = weakref.ref(Node())
        gc.collect()
        assert inside() is None
    assert gc.get_freeze_count() == 0


def test_what_was_there_is_only_met_in_sight():
    node = Node()
    with hiding():
        assert not in_heap(node)
        with in_sight():
            assert in_heap(node)
            with in_sight():  # nothing is hidden: nothing to show
                assert in_heap(node)
        assert not in_heap(node)
    assert in_heap(node)


def test_an_outer_block_hides_on_after_an_inner_one():
    node = Node()
    with settled():
        with settled():
            assert not in_heap(node)
        assert not in_heap(node)


def test_what_the_program_froze_before_stays_frozen():
    node = Node()
    gc.freeze()
    with settled(), in_sight():
        assert not in_heap(node)
    assert not in_heap(node)


def test_what_the_program_freezes_inside_stays_frozen():
    with hiding():
        kept = [Node() for _ in range(100)]
        gc.freeze()
    assert gc.get_freeze_count() > 0
    assert not in_heap(kept[0])


def test_an_error_shows_what_was_hidden():
    with pytest.raises(ValueError, match="inside"), hiding():
        raise ValueError("inside")
    assert gc.get_freeze_count() == 0
