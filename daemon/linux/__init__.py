"""Thin typed access to the kernel."""
