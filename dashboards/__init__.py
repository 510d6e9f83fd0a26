"""Dashboards as code: boards in `boards/`, built to Grafana's JSON in `generated/`; names come from exporters.names."""
