"""`assay inspect`: what was it compiled to? And its subcommands: diff, across, since, phases."""

from assay.cli.group import verb_app
from assay.cli.inspect.across import across
from assay.cli.inspect.code import inspect
from assay.cli.inspect.diff import diff
from assay.cli.inspect.phases import phases
from assay.cli.inspect.since import since

app = verb_app(inspect, diff, across, since, phases)
