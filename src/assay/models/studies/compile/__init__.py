"""Study of torch.compile from a cold process, a warm disk cache and a warm process."""
