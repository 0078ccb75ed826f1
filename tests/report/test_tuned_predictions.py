"""A store's searches, as the next search on this machine learns from them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pyrometer.cli.saving import save_run
from pyrometer.hardware.environment import read_environment
from pyrometer.record import to_dict
from pyrometer.report.tuned_predictions import stored_predictions, stored_tunings
from pyrometer.store.store import Store
from pyrometer.tuning.search.earlier import Earlier
from pyrometer.tuning.search.spread import UNKNOWN


@pytest.fixture
def stored(documents, tmp_path):
    """Stores the recorded search under an environment, so many times."""

    def store_it(environment, times):
        search = replace(documents["convolutions"], environment=environment)
        for _ in range(times):
            save_run(
                str(tmp_path / "store"),
                kind="tune",
                target=search.target,
                document=to_dict(search),
                environment=environment,
            )
        return Store.open(str(tmp_path / "store"))

    return store_it


def test_searches_on_this_machine_are_learned_from(documents, stored):
    store = stored(read_environment(), 4)
    known = Earlier.of(stored_tunings(store))
    search = documents["convolutions"]
    assert known.confirmed == [search.final.log_ratios] * 4
    assert known.spread.variance > 0
    assert {each.run_id for each in known.predicted} == {run.id for run in store.runs()}
    assert stored_predictions(store).levers == known.predicted


def test_searches_on_another_machine_say_nothing(documents, stored):
    here = read_environment()
    elsewhere = replace(here, cpu=replace(here.cpu, model="another"), fingerprint="another")
    known = Earlier.of(stored_tunings(stored(elsewhere, 4)))
    assert known == Earlier([], [])
    assert known.spread == UNKNOWN
