"""alpha·x + y, into y's own memory if wished."""
