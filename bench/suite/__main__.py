"""`python -m bench.suite`: see main.py."""
import sys

from bench.suite.main import main

if __name__ == "__main__":
    sys.exit(main())
