"""Definitions of the verbs: arguments and help here, the work in modules that are imported when a verb runs."""
