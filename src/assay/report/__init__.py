"""Reports on records: one self-contained page, its pictures, and tables for a notebook."""

from assay.report.notebook import Records, html_table
from assay.report.page import report
from assay.verb import callable_room

__all__ = ["Records", "html_table", "report"]

callable_room(__name__, report)
