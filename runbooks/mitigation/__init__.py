"""Mitigations that a machine may carry out: switched on by hand, limited, written down, taken back, checked again."""
