"""Dashboards as code: builders of Grafana dashboards and provisioning come here; names come from exporters.names."""
