"""What the product costs and how fast it serves, measured beside what people run today."""
