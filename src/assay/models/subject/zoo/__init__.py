"""The models that come with Assay, written like a user's: `build()` makes the model, `example(batch)` its inputs."""
