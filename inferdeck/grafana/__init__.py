"""`inferdeck grafana`: load our dashboards and alerting into a running Grafana, read them back, mark and silence."""
