"""The command line: parses, shows progress, prints. One small file per verb."""

from assay.cli.main import main

__all__ = ["main"]
