"""Real containers of Docker under the daemon."""
