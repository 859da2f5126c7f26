"""Packed weights in a model: eight bits or fewer per element on the device, the originals in a file until undo."""
