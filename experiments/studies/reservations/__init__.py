"""CPUs of one's own, or weights: what each does for services and for who is beside them."""
