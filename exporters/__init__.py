"""Lets measurements out: metrics, spans and look-up, all read from the recorder's rows."""
