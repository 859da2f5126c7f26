"""Entry point of a fresh process, which answers the request on its command line, or those that come over a channel."""

import json
import sys

from assay.worker.fresh import answered, serve

if sys.argv[1].isdigit():
    serve()
else:
    answered(json.loads(sys.argv[1]))
