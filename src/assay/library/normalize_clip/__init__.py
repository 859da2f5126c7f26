"""Values shifted and scaled to a known mean and standard deviation, then clipped."""
