"""`python -m assay`."""

from assay.cli.main import program

program()
