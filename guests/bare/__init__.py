"""The freestanding guest of vm-images/bare: built, started, asked."""
