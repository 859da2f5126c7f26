"""How the model of a point is made and judged, in one module for each kind of study."""
