"""What is written for Grafana, Prometheus and Alertmanager is read by the programs that it is for."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from services import needs

from pyrometer.errors import InputError
from pyrometer.monitor.dashboards.grafana import DASHBOARDS, dashboard
from pyrometer.monitor.dashboards.objectives import Objectives
from pyrometer.monitor.dashboards.plain_yaml import yaml_of
from pyrometer.monitor.dashboards.rule_tests import rule_tests
from pyrometer.monitor.dashboards.rules import alerts, recordings
from pyrometer.monitor.dashboards.write import RULES, write_dashboards
from pyrometer.monitor.export.metrics import METRICS, PREFIX

BOTH = [Objectives(), Objectives(latency_s=0.05, availability=0.99)]


def run(*argv, folder):
    done = subprocess.run(argv, check=False, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "objectives",
    [pytest.param(BOTH[0], id="default", marks=pytest.mark.exhaustive), pytest.param(BOTH[1], id="latency")],
)
def test_promtool_takes_the_rules_and_their_tests(tmp_path, objectives):
    promtool = needs("promtool", "prometheus")
    write_dashboards(tmp_path, objectives)
    run(promtool, "check", "rules", RULES, folder=tmp_path)
    run(promtool, "test", "rules", "prometheus-rules-test.yml", folder=tmp_path)


@pytest.mark.parametrize("objectives", BOTH, ids=["default", "latency"])
def test_every_alert_has_a_test_that_it_fires(objectives):
    fired = {
        expected["alertname"]
        for test in rule_tests(objectives, RULES)["tests"]
        for expected in test["alert_rule_test"]
        if expected["exp_alerts"]
    }
    assert fired == {one.alert for one in alerts(objectives)}


@pytest.mark.slow
def test_a_rule_that_never_fires_fails_its_test(tmp_path):
    promtool = needs("promtool", "prometheus")
    write_dashboards(tmp_path, Objectives())
    rules = tmp_path / RULES
    rules.write_text(rules.read_text().replace("monitor_alarms > 0", "monitor_alarms > 9"))
    done = subprocess.run(
        [promtool, "test", "rules", "prometheus-rules-test.yml"],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode != 0


def test_alertmanager_takes_its_routes(tmp_path):
    amtool = needs("amtool", "prometheus-alertmanager")
    write_dashboards(tmp_path, Objectives())
    run(amtool, "check-config", "alertmanager.yml", folder=tmp_path)
    run(amtool, "config", "routes", "test", "--config.file=alertmanager.yml", "--verify.receivers=pages", "severity=page", folder=tmp_path)  # fmt: skip


def expressions():
    for name in DASHBOARDS:
        for panel in dashboard(name)["panels"]:
            for target in panel["targets"]:
                yield target["expr"]


def test_every_query_of_a_panel_is_promql(tmp_path):
    promtool = needs("promtool", "prometheus")
    rules = [{"record": f"panel:{i}", "expr": expr} for i, expr in enumerate(expressions())]
    (tmp_path / "panels.yml").write_text(yaml_of({"groups": [{"name": "panels", "rules": rules}]}))
    run(promtool, "check", "rules", "panels.yml", folder=tmp_path)


def test_every_metric_that_is_asked_for_is_one_that_we_tell():
    recorded = {one.record for one in recordings()}
    asked = [*expressions(), *(one.expr for one in recordings())]
    asked += [one.expr for objectives in BOTH for one in alerts(objectives)]
    for expr in asked:
        for name in re.findall(r"pyrometer:[a-z0-9_:]+", expr):
            assert name in recorded
        for name in re.findall(rf"\b{PREFIX}([a-z0-9_]+)", expr):
            metric = METRICS.get(name.removesuffix("_total")) or METRICS[name.removesuffix("_bucket")]
            assert (metric.kind == "counter") == name.endswith("_total"), name
            assert (metric.kind == "histogram") == name.endswith("_bucket"), name


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_is_what_grafana_imports(name):
    found = json.loads(json.dumps(dashboard(name)))
    panels = found["panels"]
    assert found["uid"] == f"pyrometer-{name}"
    assert [panel["id"] for panel in panels] == list(range(1, len(panels) + 1))
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels)
    for panel in panels:
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
        assert {target["datasource"]["uid"] for target in panel["targets"]} == {"${datasource}"}
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])


@pytest.mark.parametrize(("field", "value"), [("availability", 1.0), ("availability", 0), ("latency_s", -1)])
def test_objectives_that_no_rule_could_say_are_refused(field, value):
    with pytest.raises(InputError, match="legal is"):
        Objectives(**{field: value})
