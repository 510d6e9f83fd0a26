"""What is done to a text before the model reads it: cleaning, and the character rule of the contract."""
