"""Whether live inputs are still distributed as those of the training: statistics, judgement, and the rows they read."""
