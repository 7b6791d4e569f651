"""One format, one folder: what each line of the record holds, how it is written, read and decided again."""
