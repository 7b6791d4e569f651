"""Which class of CPU reservation a program needs, by trying (Bacou et al., SCC 2019, section IV-C)."""
