"""Grafana's alerting as files: rules, contact points, policies, mute timings, templates, all from the same catalogue."""
