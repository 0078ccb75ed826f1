"""Objects that no collection looks at for a while, and Python's own count of them."""

import gc
import weakref

import pytest

from pyrometer.garbage import Settled, uncollected


class Ring:
    """Held by itself alone."""

    def __init__(self):
        self.itself = self


@pytest.fixture
def nothing_frozen():
    before = gc.get_freeze_count()
    gc.unfreeze()
    yield
    gc.unfreeze()
    if before:
        gc.freeze()


def test_what_lives_is_frozen_within_and_looked_at_again_after(nothing_frozen):
    with Settled():
        assert gc.get_freeze_count() > 1000
    assert gc.get_freeze_count() == 0


def test_a_cycle_that_was_frozen_is_freed_once_it_is_renewed(nothing_frozen):
    ring = Ring()
    gone = weakref.ref(ring)
    with Settled() as settled:
        del ring
        gc.collect()
        assert gone() is not None
        settled.renew()
        assert gone() is None
        assert gc.get_freeze_count() > 1000


def test_what_somebody_else_froze_stays_frozen(nothing_frozen):
    gc.freeze()
    frozen = gc.get_freeze_count()
    with Settled() as settled:
        settled.renew()
    assert gc.get_freeze_count() == frozen


def test_before_it_begins_there_is_nothing_to_renew(nothing_frozen):
    Settled().renew()
    assert gc.get_freeze_count() == 0


def test_what_is_made_to_stay_is_looked_at_by_a_full_collection_only(nothing_frozen):
    with uncollected(stays=True):
        made = [[]]
    assert gc.isenabled()
    assert any(one is made for one in gc.get_objects(generation=2))
    assert gc.get_freeze_count() == 0


def test_what_others_froze_stays_frozen(nothing_frozen):
    gc.freeze()
    frozen = gc.get_freeze_count()
    with uncollected(stays=True):
        pass
    assert gc.get_freeze_count() == frozen
