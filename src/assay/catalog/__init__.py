"""Finds, selects and describes the ops and kernels of the library and of a user's files, without importing a kernel."""
