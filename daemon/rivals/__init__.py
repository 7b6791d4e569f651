"""Policies to compare with: nothing at all, what an operator does by hand, and the paper's rivals."""
