from __future__ import annotations

import pytest
from torch.utils.data import DataLoader

from pyrometer.loading.loader import settings_of
from pyrometer.loading.settings import LoaderSettings
from pyrometer.tuning.loader.record import LoaderGain
from pyrometer.tuning.loader.turn import Round, Turn
from pyrometer.tuning.loader.wording import code_to_use, sentence_of

OLD = LoaderSettings(num_workers=8, prefetch_factor=2)
NEW = LoaderSettings(num_workers=2, prefetch_factor=2)
TURN = Turn(settings=OLD, rounds=[Round(1, 0.02, 0.01, False)], start_s=0.0)


def gain(outcome, ratio=1.0, low=0.99, high=1.01, **changes):
    return LoaderGain(
        outcome=outcome,
        ratio=ratio,
        ci_low=low,
        ci_high=high,
        confidence=0.95,
        num_blocks=6,
        candidate=NEW,
        **changes,
    )


@pytest.mark.parametrize(
    ("best", "result", "sentence"),
    [
        (
            NEW,
            gain("faster", 0.5, 0.4, 0.625),
            "2 workers, prefetch 2: 2.00× faster (1.60–2.50) than 8 workers, prefetch 2",
        ),
        (
            NEW,
            gain("same"),
            "2 workers, prefetch 2: no slower than 8 workers, prefetch 2, for less (1.00× (0.990–1.01))",
        ),
        (OLD, gain("same"), "8 workers, prefetch 2 stays: 2 workers, prefetch 2 is as fast"),
        (
            OLD,
            gain("slower", 1.25, 1.2, 1.3),
            "8 workers, prefetch 2 stays: 2 workers, prefetch 2 is 1.25× slower (1.20–1.30)",
        ),
        (
            OLD,
            gain("undecided", 0.9, None, None, needed_s=3.0),
            "8 workers, prefetch 2 stays: 2 workers, prefetch 2 took 0.900× as long in 6 paired blocks, which decide nothing; about 3.00 s more may",
        ),
        (
            OLD,
            None,
            "8 workers, prefetch 2 is already best of 2 settings tried (20.0 ms per batch, 50 % of it waiting)",
        ),
        (NEW, None, "2 workers, prefetch 2, since 8 workers, prefetch 2 is not allowed"),
    ],
)
def test_each_result_has_its_sentence(best, result, sentence):
    other = Turn(settings=NEW, rounds=[Round(1, 0.03, 0.01, False)], start_s=0.0)
    assert sentence_of(OLD, best, result, [TURN, other]) == sentence


def test_one_setting_alone_is_not_called_the_best():
    assert "nothing else could be tried" in sentence_of(OLD, OLD, None, [TURN])


def test_what_there_was_no_time_for_leaves_it_undecided():
    said = sentence_of(OLD, OLD, None, [TURN], NEW)
    assert said.startswith("undecided, 8 workers")
    assert "no time was left to try or prove 2 workers" in said
    assert "already best" not in said


@pytest.mark.parametrize("best", [LoaderSettings(), NEW])
def test_the_code_can_be_written_into_the_users_own_call(best):
    given = {
        "num_workers": 1,
        "prefetch_factor": 3,
        "persistent_workers": True,
        "multiprocessing_context": "fork",
        "timeout": 9,
    }
    use = code_to_use(best, DataLoader([1, 2, 3], **given))
    changes = eval(use.replace("DataLoader(..., ", "dict("))
    written = DataLoader([1, 2, 3], **{**given, **changes})
    assert settings_of(written) == best
    assert len(list(written)) == 3
