"""Weights packed in a model: eight bits and fewer an element on the device, the originals in a file until undo."""
