"""What the library and a user's files hold: found, selected and described without importing a kernel."""
