"""python -m bench.suite.models FOLDER MODEL BATCH...: makes a model's files."""
import sys
from pathlib import Path

from bench.suite.models.making import build

build(Path(sys.argv[1]), sys.argv[2], [int(b) for b in sys.argv[3:]])
