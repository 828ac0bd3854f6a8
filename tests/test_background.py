"""Kernels made in the background, with a stand-in for the making that waits for the test."""
import threading

import pytest

from tf_autofuse.background import TOGETHER, Workshop
from tf_autofuse.kernel_store import StageFailure


class Making:
    """Stands in for KernelStore.make: begins when the test says so, and notes what came together."""

    def __init__(self, results=None):
        self.go = threading.Semaphore(0)
        self.groups = []
        self.results = results or {}

    def __call__(self, store, bodies):
        self.go.acquire()
        self.groups.append(list(bodies))
        made = {body: self.results.get(body, "kernel of " + body) for body in bodies}
        for result in made.values():
            if isinstance(result, Exception):
                raise result
        return made


class Delivered(dict):
    def __call__(self, key, body, result):
        assert key not in self
        self[key] = result


def orders(*names):
    return {name: name for name in names}


def test_nobody_waits_and_everything_comes():
    making, delivered = Making(), Delivered()
    shop = Workshop(making)
    shop.start("store", orders("a", "b"), delivered)
    assert shop.unavailable("a") and not shop.unavailable("c")
    assert not shop.wait(["a"], 0) and not delivered
    making.go.release()
    assert shop.wait(["a", "b"])
    assert delivered == {"a": "kernel of a", "b": "kernel of b"} and not shop.unavailable("a")
    assert making.groups == [["a", "b"]]


def test_what_is_pending_is_ordered_once():
    making, first, second = Making(), Delivered(), Delivered()
    shop = Workshop(making)
    shop.start("store", orders("a"), first)
    shop.start("store", orders("a", "b"), second)
    making.go.release()
    making.go.release()
    assert shop.wait(["a", "b"])
    assert first == {"a": "kernel of a"} and second == {"b": "kernel of b"}


def test_many_come_some_at_a_time():
    making, delivered = Making(), Delivered()
    shop = Workshop(making)
    names = ["k%02d" % i for i in range(2 * TOGETHER + 1)]
    shop.start("store", orders(*names), delivered)
    making.go.release()
    assert shop.wait(names[:TOGETHER])
    assert sorted(delivered) == names[:TOGETHER]
    for _ in range(2):
        making.go.release()
    assert shop.wait(names) and sorted(delivered) == names
    assert [len(group) for group in making.groups] == [TOGETHER, TOGETHER, 1]


def test_stores_are_not_mixed():
    making, delivered = Making(), Delivered()
    shop = Workshop(making)
    shop.start("one", orders("a"), delivered)
    shop.start("two", orders("b"), delivered)
    making.go.release()
    making.go.release()
    assert shop.wait(["a", "b"])
    assert making.groups == [["a"], ["b"]]


def test_a_failure_is_delivered_and_remembered_until_it_is_ordered_again():
    failure = StageFailure("build", "no compiler", "install one")
    making, delivered, again = Making({"a": failure}), Delivered(), Delivered()
    shop = Workshop(making)
    making.go.release()
    shop.start("store", orders("a", "b"), delivered)
    assert shop.wait(["a", "b"])
    assert delivered == {"a": failure, "b": "kernel of b"}
    assert shop.unavailable("a") and not shop.unavailable("b")
    making.results = {}
    making.go.release()
    shop.start("store", orders("a"), again)
    assert shop.wait(["a"]) and again == {"a": "kernel of a"} and not shop.unavailable("a")


def test_broken_machinery_fails_its_orders_only():
    making, delivered = Making({"a": RuntimeError("out of paper")}), Delivered()
    shop = Workshop(making)
    making.go.release()
    shop.start("store", orders("a"), delivered)
    assert shop.wait(["a"])
    assert "out of paper" in delivered["a"].reason
    making.go.release()
    shop.start("store", orders("b"), delivered)
    assert shop.wait(["b"]) and delivered["b"] == "kernel of b"


def test_a_receiver_that_raises_stops_nothing():
    making, delivered = Making(), Delivered()
    shop = Workshop(making)

    def raises(key, body, result):
        raise ValueError("not wanted")

    making.go.release()
    making.go.release()
    shop.start("store", orders("a"), raises)
    shop.start("store", orders("b"), delivered)
    assert shop.wait(["a", "b"]) and delivered == {"b": "kernel of b"}


def test_nothing_is_delivered_after_the_end():
    making, delivered = Making(), Delivered()
    shop = Workshop(making)
    shop.start("store", orders("a"), delivered)
    thread = shop._thread
    shop.stop()
    assert shop.wait(["a"])  # nobody is left waiting
    making.go.release()
    thread.join()
    assert not delivered
    shop.start("store", orders("b"), delivered)
    assert not shop.unavailable("b")


@pytest.mark.parametrize("count", [1, 3])
def test_the_thread_begins_again_for_later_orders(count):
    making, delivered = Making(), Delivered()
    shop = Workshop(making)
    for i in range(count):
        making.go.release()
        shop.start("store", orders("k%d" % i), delivered)
        assert shop.wait(["k%d" % i])
    assert len(delivered) == count
