"""Two versions of the model at one time: who is asked, what becomes of a failing one, and when it is taken back."""
