"""`bundle`: one redacted file of an incident, that triage can look at again anywhere."""
