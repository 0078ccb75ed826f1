"""`pyrometer compare`: the terminal, the page and the document say the same, and claim no more than they may."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pyrometer.cli.main import main
from pyrometer.record import from_json
from pyrometer.report.history_documents import CompareDocument
from pyrometer.store.run import Run
from pyrometer.store.store import Store

CLAIMS = ("2.00×", "0.500", "50.0 %", "faster than", "change</th>")
Save = Callable[..., Run]


@pytest.fixture
def save(measured: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Save:
    """Puts a run into the store of the working directory; `figures` replace those of its measurement, `more` joins its document."""
    monkeypatch.chdir(tmp_path)
    store = Store.open(".pyrometer")

    def saved(
        *arguments: Any,
        figures: dict[str, Any] | None = None,
        more: dict[str, Any] | None = None,
        **options: Any,
    ) -> Run:
        run = measured.measured_run(*arguments, **options)
        run.document["evidence"]["measurement"] |= figures or {}
        run.document.update(more or {})
        return store.save(run)

    return saved


@pytest.fixture
def compare(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def compared(a: Run, b: Run, *flags: str) -> str:
        assert main(["compare", a.id, b.id, *flags]) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        return captured.out

    return compared


def test_two_targets_have_no_ratio_anywhere_and_all_say_why(save, compare, tmp_path):
    a = save(0.002, target="old.py:work", age_s=60)
    b = save(0.001, target="new model.py:work")
    shown = compare(a, b, "-o", str(tmp_path / "page.html"))
    page = (
        (tmp_path / "page.html").read_text(encoding="utf-8").partition("</footer>")[0].partition("<body>")[2]
    )
    for text in (shown, page):
        assert "two targets: A takes 2.00 ms, B takes 1.00 ms per step" in text
        assert (
            "No ratio and no verdict: the two differ in target (old.py:work, then new model.py:work)" in text
        )
        assert not [claim for claim in CLAIMS if claim in text]
    assert "pyrometer bench old.py:work --vs 'new model.py:work'" in shown
    comparison = from_json(CompareDocument, compare(a, b, "--json")).comparison
    assert comparison.ratio_of_medians is None
    assert [(change.name, change.a, change.b) for change in comparison.differ_in] == [
        ("target", "old.py:work", "new model.py:work")
    ]


def test_one_target_has_a_ratio_and_no_verdict_everywhere(save, compare, tmp_path):
    a, b = save(0.002, age_s=60), save(0.001)
    shown = compare(a, b, "-o", str(tmp_path / "page.html"))
    for text in (shown, (tmp_path / "page.html").read_text(encoding="utf-8")):
        assert "B was 2.00× faster than A, not yet proven" in text
        assert "for display and no verdict" in text
        assert "-50.0 %" in text
    comparison = from_json(CompareDocument, compare(a, b, "--json")).comparison
    assert (comparison.ratio_of_medians, comparison.differ_in) == (0.5, [])


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ({"units_per_step": 4.0}, "work per step (1 frames, then 4 frames)"),
        ({"clock": "cuda_events"}, "clock (wall, then cuda_events)"),
    ],
)
def test_steps_that_are_not_the_same_have_no_ratio(save, compare, figures, said):
    a, b = save(0.002, age_s=60), save(0.003, figures=figures)
    out = compare(a, b)
    assert "not the same step: A takes 2.00 ms, B takes 3.00 ms per step" in out
    assert said in out
    assert "1.50" not in out


def test_nothing_is_claimed_where_intervals_overlap(save, compare):
    out = compare(save(0.002, age_s=60), save(0.00202))
    assert out.startswith("no clear difference: the intervals of both medians overlap")


def test_what_limits_the_trust_in_a_side_is_named(save, compare, tmp_path):
    caveats = [
        {
            "code": code,
            "message": f"{code} seen",
            "advice": {"slug": code, "title": "run longer", "fix_class": "exact"},
        }
        for code in ("drift", "load")
    ]
    b, a = save(0.001, age_s=60), save(0.002, figures={"warnings": caveats})
    out = compare(a, b, "-o", str(tmp_path / "page.html"))
    for text in (out, (tmp_path / "page.html").read_text(encoding="utf-8")):
        assert "A was taken after B" in text
        assert "The measurement of A is not sound: drift seen, and 1 more reason." in text
        assert "The measurement of B" not in text


def test_only_what_both_runs_looked_at_is_compared(save, compare):
    phases = [{"name": "forward", "mean_s": 0.001, "median_s": 0.001, "share": 1.0}]
    out = compare(
        save(
            age_s=60,
            kind="check",
            figures={"phases": phases},
            more={"diagnosis": {"target": "", "findings": [], "reading": []}},
        ),
        save(),
    )
    assert "Phases" not in out
    assert "Findings" not in out
    assert "gone" not in out


def test_between_two_runs_of_one_clean_commit_there_is_nothing_to_compare(save, compare):
    a, b = (save(age_s=age_s, commit=("0123456789abcdef", False)) for age_s in (60, 0))
    text = compare(a, b)
    assert "Nothing to compare: both runs are of the same code" in text
    assert "pyrometer bench" not in text
