"""torch.compile, studied: from a cold process, a warm disk cache, a warm process."""
