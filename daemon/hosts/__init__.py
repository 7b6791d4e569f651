"""Kernels and fakes of kernels behind one protocol: host.py."""
