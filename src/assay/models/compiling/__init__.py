"""One process of a compile study: what it is asked (case), what it does (child), and what its numbers mean (worth)."""
