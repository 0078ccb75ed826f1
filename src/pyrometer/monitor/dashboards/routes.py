"""Alertmanager: pages at once, tickets gathered, and no ticket about a model that somebody is paged for."""

from __future__ import annotations

from typing import Any

from pyrometer.monitor.dashboards.objectives import Objectives


def routes(objectives: Objectives) -> dict[str, Any]:
    """The configuration, as data."""
    hook = {"url": objectives.webhook, "send_resolved": True}
    return {
        "route": {
            "receiver": "tickets",
            "group_by": ["alertname", "model"],
            "group_wait": "30s",
            "group_interval": "5m",
            "repeat_interval": "12h",
            "routes": [
                {
                    "matchers": ['severity="page"'],
                    "receiver": "pages",
                    "group_wait": "10s",
                    "repeat_interval": "1h",
                }
            ],
        },
        "inhibit_rules": [
            {
                "source_matchers": ['severity="page"'],
                "target_matchers": ['severity="ticket"'],
                "equal": ["model", "call"],
            }
        ],
        "receivers": [
            {"name": "pages", "webhook_configs": [hook]},
            {"name": "tickets", "webhook_configs": [hook]},
        ],
    }
