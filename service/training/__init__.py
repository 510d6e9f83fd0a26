"""Training of the sentiment model from public reviews; nothing of it is imported while serving."""
