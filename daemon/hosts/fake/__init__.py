"""A host without a kernel."""
