"""What tests of rules on data share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyrometer.advice import Advice, Gain
from pyrometer.loading.report import LoaderReport
from pyrometer.loading.settings import LoaderSettings
from pyrometer.rules.match import Match
from pyrometer.source.edit import apply_edits


@pytest.fixture
def loading() -> Callable[..., LoaderReport]:
    """`loading(data_share=0.5, advice=[...])`: a report about a loader without workers, but for what is given."""

    def build(**fields: Any) -> LoaderReport:
        share = fields.get("data_share", 0.6)
        usual: dict[str, Any] = {
            "verdict": "serial",
            "sentence": "loading and computing take turns",
            "settings": LoaderSettings(),
            "measured_step_s": 0.1,
            "data_share": share,
            "wait_s": 0.1 * share,
            "wait_fraction": share,
            "first_batch_s": 0.1 * share,
            "free_data_ratio": 1 - share,
        }
        return LoaderReport(**{**usual, **fields})

    return build


@pytest.fixture
def advice() -> Callable[..., Advice]:
    """`advice("more-workers", saves_s=0.03)`: one advice of the loader's."""

    def build(slug: str, saves_s: float | None = None, lever: str | None = None) -> Advice:
        return Advice(
            slug=slug,
            title=f"do {slug}",
            why=f"why {slug}",
            rewrite="num_workers=2",
            effect="costs nothing",
            fix_class="semantic",
            lever=lever,
            gain=None if saves_s is None else Gain(saves_s=saves_s, method="model"),
        )

    return build


@pytest.fixture
def fixed(matches: Callable[..., list[Match]]) -> Callable[[str, str], str]:
    """`fixed("PYR304", text)`: the text after the one fix that a rule offers; the rule is silent about it."""

    def apply(which: str, text: str) -> str:
        (match,) = matches(which, text)
        assert match.fix is not None
        assert match.fix.fix_class == "semantic"
        after = apply_edits(text, match.fix.edits)
        assert not matches(which, after)
        return after

    return apply
