"""A process that makes cache entries until it is told to stop or is killed: python cache_worker.py FOLDER
SEED COUNT KEYS.

Prints a line for each entry that it has in hand, after checking its contents.
"""

import os
import random
import sys

from tf_autofuse.build.cache import Cache
from tf_autofuse.build.storage import open_storage


def contents(key: str) -> bytes:
    """What the entry `key` holds, the same whoever makes it: long enough for a kill to hit the middle."""
    return (key * 2048).encode("ascii")


def make(key: str):
    def fill(folder):
        data = contents(key)
        with open(str(folder / "kernel.so"), "wb") as stream:
            for start in range(0, len(data), 4096):
                stream.write(data[start : start + 4096])
                stream.flush()
        return {"name": key}

    return fill


def main(folder: str, seed: int, count: int, keys: int) -> int:
    def complain(problem):
        print("PROBLEM", problem, flush=True)

    cache = Cache(
        open_storage(folder, os.environ), max_bytes=keys * len(contents("0" * 32)) // 2, warn=complain
    )
    order = random.Random(seed)
    for i in range(count):
        key = "%02x" % order.randrange(keys) + "0" * 30
        entry, made = cache.find_or_make("kernel", key, make(key))
        try:
            if entry.file("kernel.so").read_bytes() != contents(key):
                print("WRONG", key, flush=True)
                return 1
        except FileNotFoundError:
            pass  # another process made room; what is there is right, and this one's loader would build again
        print("HAVE", key, made, flush=True)
        if i % 5 == 4:
            cache.collect()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:])))
