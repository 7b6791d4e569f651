"""CPU limits with and without the daemon's caps below them."""
