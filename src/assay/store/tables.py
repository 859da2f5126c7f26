"""The tables. This module is imported when a store is opened, since importing SQLAlchemy takes time."""

from sqlalchemy import Column, Float, Integer, MetaData, String, Table, Text

VERSION = 1
"""Raised whenever a table changes: an older or newer store is refused, never misread. Records carry a schema of their
own, and one store may hold several."""

metadata = MetaData()

about = Table("assay_store", metadata, Column("version", Integer, primary_key=True))

records = Table(
    "records",
    metadata,
    Column("id", Integer, primary_key=True),  # in the order of insertion
    Column("key", String(32), nullable=False, unique=True),
    Column("run", Text, nullable=False, index=True),
    Column("verb", Text, nullable=False, index=True),
    Column("kernel", Text, nullable=False, index=True),
    Column("op", Text, nullable=False, index=True),
    Column("backend", Text, nullable=False, index=True),
    Column("workload", Text, nullable=False, index=True),
    Column("dtype", Text, nullable=False, index=True),
    Column("status", Text, nullable=False, index=True),
    Column("device", Text, nullable=False, index=True),
    Column("commit", Text, nullable=False, index=True),
    Column("time", Text, nullable=False, index=True),  # UTC, ISO: sorts as text
    Column("median", Float, index=True),
    Column("record", Text, nullable=False),  # the whole record as JSON
)
