"""Ranks that come up and then never do anything, though their pulse goes on."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from labs.lifeline import die_with_parent
from labs.pulse import keep_pulse

parser = argparse.ArgumentParser()
parser.add_argument("--spec")
parser.add_argument("--events", type=Path)
die_with_parent()
keep_pulse(parser.parse_args().events, int(os.environ["RANK"]))
time.sleep(600)
