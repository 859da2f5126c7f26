"""Values rounded to integers of few bits, times one scale for each row."""
