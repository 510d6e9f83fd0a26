"""Pictures of the dashboards' data, drawn by us from the same queries: what a reader without a Grafana gets to see."""
