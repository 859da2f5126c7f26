"""Parsers for PTX, SASS and cubins: they take text or bytes and return typed data."""
