"""Workloads that are containers, by what OCI runtimes write about each (decision 0048)."""
