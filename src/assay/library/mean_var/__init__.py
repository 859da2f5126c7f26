"""The mean and the population variance of each row."""
