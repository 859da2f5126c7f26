"""Readers of PTX, SASS and cubins: text or bytes in, typed data out."""
