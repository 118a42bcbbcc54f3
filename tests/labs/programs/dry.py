"""Dry runs of the rows in FILE, [{id, spec}], as JSON lines {id, dry}: one process for all of them."""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path

from labs.dryrun import dry_run
from labs.preload import EVERY_STRATEGY, preload
from labs.spec import parse_run_spec

preload(*EVERY_STRATEGY)
for row in json.loads(Path(sys.argv[1]).read_text()):
    dry = dry_run(parse_run_spec(row["spec"], dry=True))
    sys.stdout.write(json.dumps({"id": row["id"], "dry": dry}) + "\n")
    gc.freeze()  # what torch has loaded for this row: looked through at each step of the next, it took a tenth of it
