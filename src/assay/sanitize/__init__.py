"""sanitize: runs NVIDIA's compute-sanitizer to find memory and race errors that leave the output correct."""

from __future__ import annotations

from assay.sanitize.process import TOOLS, Report, run, why_not
from assay.sanitize.text import Problem, parse

__all__ = ["TOOLS", "Problem", "Report", "parse", "run", "why_not"]
