from __future__ import annotations

from pathlib import Path

import pytest

from pyrometer.errors import InputError, UsageError
from pyrometer.rules.registry import rules
from pyrometer.rules.rule import Limit
from pyrometer.rules.settings import RuleSettings, load_rule_settings, with_rule_flags
from pyrometer.settings import load_settings


@pytest.fixture
def load(tmp_path: Path):
    def read(content: str) -> RuleSettings:
        (tmp_path / "pyproject.toml").write_text(f"[tool.pyrometer.rules]\n{content}\n")
        load_settings({}, tmp_path)  # which leaves the table to us
        return load_rule_settings(tmp_path)

    return read


def codes(settings: RuleSettings) -> set[str]:
    return {rule.code for rule in settings.chosen()}


def test_without_a_file_every_stable_rule_is_chosen(tmp_path: Path):
    settings = load_rule_settings(tmp_path)
    assert settings == RuleSettings(root=str(tmp_path.resolve()))
    assert codes(settings) == {rule.code for rule in rules() if rule.stage == "stable"}


def test_everything_is_read(load, make_rule, tmp_path: Path):
    make_rule("PYR890", "slow-call", limits=(Limit("min_share", 0.1, "less cannot be told"),))
    settings = load(
        """
        select = ["PYR0"]
        extend-select = ["slow-call"]
        ignore = { PYR091 = "reasons are in the commit" }
        per-file-ignores = { "tests/**" = ["PYR890"] }
        exclude = ["legacy"]
        limits = { "slow-call.min_share" = 1 }
        preview = true
        """
    )
    assert settings == RuleSettings(
        root=str(tmp_path),
        select=["PYR0"],
        extend_select=["slow-call"],
        ignore={"PYR091": "reasons are in the commit"},
        per_file_ignores={"tests/**": ["PYR890"]},
        exclude=["legacy"],
        limits={"PYR890.min_share": 1.0},
        preview=True,
    )
    assert {"PYR090", "PYR890"} <= codes(settings)
    assert "PYR091" not in codes(settings)
    assert settings.ignored_in(tmp_path / "tests" / "a" / "x.py") == {"PYR890"}
    assert settings.ignored_in(tmp_path / "src" / "x.py") == frozenset()
    assert settings.excludes(tmp_path / "legacy" / "x.py")
    assert not settings.excludes(tmp_path / "src" / "x.py")


def test_a_limit_without_quotes_is_read_too(load, make_rule):
    make_rule("PYR890", "slow-call", limits=(Limit("min_share", 0.1, "less cannot be told"),))
    assert load("limits.PYR890.min_share = 0.2").limits == {"PYR890.min_share": 0.2}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('selct = ["ALL"]', "selct: no such setting; did you mean select?"),
        (
            "zzz = 1",
            "zzz: no such setting; legal are select, extend-select, ignore, per-file-ignores, exclude, respect-gitignore, limits, preview",
        ),
        (
            'select = ["slow-cal"]',
            "select: slow-cal: no such rule; did you mean slow-call",
        ),
        ('select = "ALL"', "select: got 'ALL'; legal is a list of names"),
        ("select = [3]", "select: got [3]; legal is a list of names"),
        ('ignore = { PYR890 = "" }', "ignore: PYR890: got ''; legal is a reason"),
        ('per-file-ignores = ["x"]', "per-file-ignores: got ['x']; legal is a table"),
        ('per-file-ignores = { "a" = ["PYR89x"] }', "per-file-ignores: PYR89x: no such rule"),
        ("exclude = 1", "exclude: got 1; legal is a list of names"),
        ('limits = { "PYR890.min_shar" = 1 }', "did you mean min_share?"),
        ('limits = { "PYR890.min_share" = "1" }', "got '1'; legal is a number, by default 0.1"),
        ('limits = { "PYR890.min_share" = nan }', "got nan; legal is a number"),
        ('limits = { "PYR890" = 1 }', "PYR890: legal is a rule and its limit, such as PYR301.min_share"),
        ("limits = 1", "limits: got 1; legal is a table"),
        ("preview = 1", "preview: got 1; legal is true or false"),
    ],
)
def test_what_is_wrong_is_one_line_with_the_file(load, make_rule, tmp_path: Path, content: str, message: str):
    make_rule("PYR890", "slow-call", limits=(Limit("min_share", 0.1, "less cannot be told"),))
    with pytest.raises(InputError) as caught:
        load(content)
    said = str(caught.value)
    assert said.startswith(f"{tmp_path / 'pyproject.toml'}: [tool.pyrometer.rules] ")
    assert message in said
    assert "\n" not in said


def test_flags_replace_what_is_selected_and_add_to_what_is_ignored(slow_call, risky_call):
    settings = RuleSettings(select=["ALL"], extend_select=["PYR0"], ignore={"PYR891": "known"})
    flagged = with_rule_flags(settings, select=["PYR89"], ignore=["PYR092"])
    assert codes(flagged) == {"PYR890"}
    assert with_rule_flags(settings, select=[], ignore=[]) == settings
    assert flagged.ignore["PYR891"] == "known"


def test_a_flag_that_names_no_rule_is_refused(slow_call):
    with pytest.raises(UsageError, match=r"slow-cal: no such rule; did you mean slow-call"):
        with_rule_flags(RuleSettings(), select=["slow-cal"], ignore=[])


def test_rules_in_preview_run_when_asked_for(make_rule):
    make_rule("PYR892", "young-call", stage="preview")
    make_rule("PYR893", "old-call", stage="deprecated")
    assert not {"PYR892", "PYR893"} & codes(RuleSettings())
    assert "PYR892" in codes(RuleSettings(preview=True))
    assert "PYR892" in codes(RuleSettings(select=["young-call"]))
    assert "PYR892" not in codes(RuleSettings(select=["PYR8"]))
    assert "PYR893" not in codes(RuleSettings(preview=True))
    assert "PYR893" in codes(RuleSettings(extend_select=["PYR893"]))


def test_files_that_cannot_be_read_are_told_whatever_is_selected(slow_call):
    assert codes(RuleSettings(select=["PYR890"])) == {"PYR890", "PYR092"}
    assert codes(RuleSettings(select=["PYR890"], ignore={"unreadable-file": "templates"})) == {"PYR890"}
