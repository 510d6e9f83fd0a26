"""A service without our rows: its own metrics read under our names, by a mapping file."""
