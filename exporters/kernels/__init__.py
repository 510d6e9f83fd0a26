"""Time per kernel of a model: measured on a fixed canary, compared with a baseline that is kept on disk."""
