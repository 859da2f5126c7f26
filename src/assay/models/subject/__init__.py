"""What a model is and where it comes from: Assay's models and the user's own, their weights, data and scores."""
