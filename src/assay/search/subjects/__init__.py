"""What a point of a space means: how its model is made and judged. One file for each kind of study."""
