"""A small transformer encoder beside the linear model: its files, and the tools of maintainers that make them."""
