"""What happens when the wanted model cannot be asked: who is answered by the CPU's, now or later, and until when."""
