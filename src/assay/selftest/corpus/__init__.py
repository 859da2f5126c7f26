"""Wrong and cheating kernels, each with a mended twin; docs/selftest.md says how an entry is written."""
