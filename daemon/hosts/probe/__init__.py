"""What can this host do? Found by trying, on processes of our own."""
