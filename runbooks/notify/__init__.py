"""Follow-ups: what triage found, sent to people by chat, e-mail or webhook, and onto Grafana's dashboards."""
