"""Triton's model repository as data: one folder for each model, with its config.pbtxt."""
