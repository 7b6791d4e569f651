"""BPF programs: sources, and the objects that clang made of them (docs/decisions/0011-bpf-objects.md)."""
