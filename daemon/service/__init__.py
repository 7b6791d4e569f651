"""The process around the loop: signals, reloads, the service manager, the status file, lines to operators."""
