"""Runbooks that people read and the tool runs: pages, steps, the triage engine, and the webhook that starts it."""
