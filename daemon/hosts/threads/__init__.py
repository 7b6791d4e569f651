"""What every host of Linux threads shares: who is managed, which knobs are held, what is put back."""
