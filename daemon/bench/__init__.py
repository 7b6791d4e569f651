"""Measuring the daemon itself."""
