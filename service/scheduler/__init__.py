"""What stands between a request and the model: who goes first, with whom, when, and who is told to come back."""
