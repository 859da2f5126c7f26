"""Derives the JSON Schema of a document of records, and the figures in it, from the types."""

import itertools
from typing import Any

from assay.bench.evidence import BenchEvidence
from assay.check.evidence import CheckEvidence
from assay.compare.evidence import CompareEvidence
from assay.compress.evidence import CompressEvidence
from assay.evidence import Evidence, Figure, figures
from assay.inspect.evidence import DiffEvidence, InspectEvidence, SinceEvidence
from assay.machine.evidence import MachineEvidence
from assay.models.studies.compile.evidence import CompileEvidence
from assay.models.studies.infer.evidence import InferEvidence
from assay.models.studies.train.evidence import TrainEvidence
from assay.record import SCHEMA, Record
from assay.search.evidence import SearchEvidence
from assay.selftest.evidence import SelftestEvidence
from assay.selftest.mutants.evidence import MutantEvidence
from assay.tune.evidence import TuneEvidence

EVIDENCE: dict[str, tuple[type[Evidence], ...]] = {
    "check": (CheckEvidence,),
    "bench": (BenchEvidence,),
    "tune": (TuneEvidence,),
    "compare": (CompareEvidence,),
    "inspect": (InspectEvidence, DiffEvidence, SinceEvidence),
    "machine": (MachineEvidence,),
    "selftest": (SelftestEvidence, MutantEvidence),
    "model": (InferEvidence, CompileEvidence, TrainEvidence),
    "compress": (CompressEvidence,),
    "search": (SearchEvidence,),
}
"""The types of evidence of each verb; several if a verb has several forms."""


def schema() -> dict[str, Any]:
    """Return the schema of a document as `--json` prints it. A record's verb determines the form of its evidence."""
    from pydantic import TypeAdapter

    kinds: list[Any] = [Record, *itertools.chain(*EVIDENCE.values())]
    refs, shared = TypeAdapter.json_schemas([(kind, "validation", TypeAdapter(kind)) for kind in kinds])
    record = shared["$defs"]["Record"]
    record["allOf"] = [
        {
            "if": {"properties": {"verb": {"const": verb}}},
            "then": {"properties": {"evidence": {"anyOf": [refs[kind, "validation"] for kind in forms]}}},
        }
        for verb, forms in EVIDENCE.items()
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A document of records",
        "type": "object",
        "properties": {
            "schema": {"type": "integer", "const": SCHEMA},
            "verb": {"type": "string"},
            "run": {"type": "string"},
            "interrupted": {"type": "boolean"},
            "records": {"type": "array", "items": {"$ref": "#/$defs/Record"}},
        },
        "required": ["schema", "records"],
        "$defs": shared["$defs"],
    }


def every_figure() -> dict[str, tuple[Figure, ...]]:
    """Return the figures of each verb that has any."""
    by_verb = {verb: tuple(itertools.chain(*map(figures, kinds))) for verb, kinds in EVIDENCE.items()}
    return {verb: own for verb, own in by_verb.items() if own}
