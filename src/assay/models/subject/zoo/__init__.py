"""The models that come with Assay, written as users write theirs: `build()` makes one, `example(batch)` its inputs."""
