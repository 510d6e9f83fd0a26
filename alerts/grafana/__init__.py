"""Grafana's alerting as files: rules, contact points, policies, mute timings, templates, from the same catalogue."""
