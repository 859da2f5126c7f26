"""Imported by every zygote: the modules that answer questions, and the ops of the library, so that every worker has
them. Loading them takes longer than most calls of a kernel.

They are loaded before any kernel's file is imported, so that the file cannot replace what they import."""

from __future__ import annotations

from assay.catalog import library
from assay.worker import disturb, execute, fence, guard, measure, patches, place, serve, settings

__all__ = ["disturb", "execute", "fence", "guard", "measure", "patches", "place", "serve", "settings"]

library.ops()
