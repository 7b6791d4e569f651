"""Machines to try things on: QEMU guests, a libvirtd of our own and its domains."""
