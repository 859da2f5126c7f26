"""Wrong and cheating kernels, each with a fixed twin; docs/selftest.md says how an entry is written."""
