"""What people watch a fleet with: Grafana's dashboards, rules of Prometheus with their tests, routes of Alertmanager."""
