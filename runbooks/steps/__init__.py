"""Diagnosis steps by topic: a step is a function `(Evidence) -> StepResult` that measures and judges nothing."""
