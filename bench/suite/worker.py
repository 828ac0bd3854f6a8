"""One contender in a process of its own: `python -m bench.suite.worker BACKEND OPTIONS` reads requests from
standard input, one JSON object a line, and answers each with one.

    {"prepare": CASE}            -> {"first": seconds of the first call, "note": text}
    {"run": CASE, "calls": N}    -> {"seconds": of each call, "floors": of the floor's call before each}
    any that fails               -> {"error": text}

CASE is a name of cases.MICRO, or "model:NAME:BATCH". A backend is a module of this package with
`prepare(case name, options) -> Prepared`.
"""
import importlib
import json
import os
import sys
import time
import traceback
from typing import Any, Callable, NamedTuple, Optional


class Prepared(NamedTuple):
    """call: runs the case once; floor: the same call with next to nothing in the work's place, where there is
    such a thing; note: what a report should say about this contender here."""

    call: Callable[[], Any]
    floor: Optional[Callable[[], Any]] = None
    note: str = ""


def timed(call, floor, calls):
    """Seconds of each call, and of the floor's call that went before it: they alternate, so that both meet
    the same clock and sleeping threads, and their difference can be taken pair by pair."""
    seconds, floors, clock = [], [], time.perf_counter
    for _ in range(calls):
        if floor is not None:
            start = clock()
            floor()
            floors.append(clock() - start)
        start = clock()
        call()
        seconds.append(clock() - start)
    return {"seconds": seconds, "floors": floors}


def answer(backend, options, prepared, request):
    if "prepare" in request:
        start = time.perf_counter()
        prepared[request["prepare"]] = backend.prepare(request["prepare"], options)
        return {"first": time.perf_counter() - start, "note": prepared[request["prepare"]].note}
    case = prepared[request["run"]]
    return timed(case.call, case.floor, request["calls"])


def main():
    backend_name, options = sys.argv[1], json.loads(sys.argv[2])
    answers = os.fdopen(os.dup(1), "w")  # whatever a framework prints goes to standard error
    os.dup2(2, 1)
    backend = importlib.import_module("bench.suite." + backend_name)
    prepared = {}
    for line in sys.stdin:
        try:
            result = answer(backend, options, prepared, json.loads(line))
        except Exception as error:  # reported, and the run goes on without this contender
            traceback.print_exc()
            first = (str(error).strip().splitlines() or [""])[0]
            result = {"error": "%s: %s" % (type(error).__name__, first)}
        answers.write(json.dumps(result) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
