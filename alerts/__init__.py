"""The alert catalogue and what is generated from it: rules, Alertmanager routes, promtool tests, a linked table."""
