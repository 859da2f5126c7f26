"""Models, Assay's and the user's own, with their weights, data and scores."""
