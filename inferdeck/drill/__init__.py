"""The drill: causes failures for real, and scores whether the stack detects them and triage names them."""
