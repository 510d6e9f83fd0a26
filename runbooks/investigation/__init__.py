"""What drift and falling confidence start: which slice of the traffic changed, since when, and by how much."""
