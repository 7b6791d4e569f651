"""What the daemon sees and does as Prometheus metrics (docs/metrics.md)."""
