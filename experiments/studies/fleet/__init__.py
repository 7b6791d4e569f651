"""What a fleet of thousands of hosts holds at the same p99, by what one host did (README.md)."""
