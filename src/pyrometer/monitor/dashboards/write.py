"""Writes all of them into a folder."""

from __future__ import annotations

import json
from pathlib import Path

from pyrometer.errors import InputError
from pyrometer.files import replacing
from pyrometer.monitor.dashboards.grafana import DASHBOARDS, dashboard
from pyrometer.monitor.dashboards.objectives import Objectives
from pyrometer.monitor.dashboards.plain_yaml import yaml_of
from pyrometer.monitor.dashboards.routes import routes
from pyrometer.monitor.dashboards.rule_tests import rule_tests
from pyrometer.monitor.dashboards.rules import rule_file

RULES = "prometheus-rules.yml"


def write_dashboards(folder: Path, objectives: Objectives) -> list[Path]:
    """Write dashboards, rules with their tests, and routes; the files that were written.

    Raises:
        InputError: the folder cannot be written.
    """
    texts = {
        **{f"grafana-{name}.json": json.dumps(dashboard(name), indent=2) + "\n" for name in DASHBOARDS},
        RULES: yaml_of(rule_file(objectives)),
        "prometheus-rules-test.yml": yaml_of(rule_tests(objectives, RULES)),
        "alertmanager.yml": yaml_of(routes(objectives)),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            with replacing(folder / name) as beside:
                beside.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror}; name another folder") from error
    return [folder / name for name in texts]
