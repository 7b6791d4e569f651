"""Workloads that are libvirt's domains, by what its QEMU driver writes about each."""
