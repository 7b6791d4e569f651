"""Real container engines: Debian's packages, unpacked into namespaces of a test's own and started there."""
