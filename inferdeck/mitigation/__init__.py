"""What mitigations do to the embedded stack, and the verb that carries them out."""
