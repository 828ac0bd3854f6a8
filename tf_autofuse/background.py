"""Kernels that are made while the session already runs.

One thread makes the kernels that nobody waits for any longer, some at a time, and hands each to whoever
asked as soon as it is there. On entry of `start` bodies that their store does not have; on exit their
keys are pending until the thread has made them or failed to. The process may end at any time: the
thread is a daemon, and the compilers that it runs are stopped.
"""
import atexit
import collections
import threading
from typing import Callable, Deque, Dict, NamedTuple, Optional, Sequence, Set, Tuple

from tf_autofuse.build import toolchain
from tf_autofuse.kernel_store import KernelStore, Result, StageFailure
from tf_autofuse.lowering.bodies import Body

#: Kernels made in one go: enough for a compiler call to serve several, few enough to have the first soon.
TOGETHER = 8

Deliver = Callable[[str, Body, Result], None]


class _Order(NamedTuple):
    store: KernelStore
    key: str
    body: Body
    deliver: Deliver


class Workshop:
    """The thread and its orders. `make(store, bodies)` gives results by key; it may be replaced in tests."""

    def __init__(self, make: Optional[Callable[[KernelStore, Sequence[Body]], Dict[str, Result]]] = None):
        self._make = make or (lambda store, bodies: store.make(bodies, lambda stage, work: work()))
        self._changed = threading.Condition()
        self._orders: Deque[_Order] = collections.deque()
        self._pending: Set[str] = set()
        self._failed: Set[str] = set()
        self._thread: Optional[threading.Thread] = None
        self._stopped = False

    def start(self, store: KernelStore, bodies: Dict[str, Body], deliver: Deliver) -> None:
        """bodies: by their store's key. deliver(key, body, result) is called on the thread, once for each
        key that is not pending already; what it raises is dropped."""
        with self._changed:
            for key, body in bodies.items():
                if key not in self._pending and not self._stopped:
                    self._pending.add(key)
                    self._failed.discard(key)
                    self._orders.append(_Order(store, key, body, deliver))
            if self._orders and self._thread is None:
                self._thread = threading.Thread(target=self._work, name="tf_autofuse builder", daemon=True)
                self._thread.start()

    def wait(self, keys: Sequence[str], patience: Optional[float] = None) -> bool:
        """Waits until none of the keys is pending, at most so many seconds. Whether that is so."""
        with self._changed:
            return self._changed.wait_for(
                lambda: self._stopped or not self._pending.intersection(keys), patience)

    def unavailable(self, key: str) -> bool:
        """Whether the kernel is still to come, or could not be made: then nobody else needs to try."""
        with self._changed:
            return key in self._pending or key in self._failed

    def stop(self) -> None:
        """Nothing more is begun or delivered. Pending keys stay pending."""
        with self._changed:
            self._stopped = True
            self._orders.clear()
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._orders or self._stopped:
                    self._thread = None
                    return
                store = self._orders[0].store
                orders = []
                while self._orders and len(orders) < TOGETHER and self._orders[0].store is store:
                    orders.append(self._orders.popleft())
            try:
                results = self._make(store, [order.body for order in orders])
            except Exception as error:  # of the machinery, not of one body
                failure = StageFailure("build", "%s: %s" % (type(error).__name__, error), "please report it")
                results = {order.key: failure for order in orders}
            if self._stopped:
                return
            for order in orders:
                self._finish(order, results[order.key])

    def _finish(self, order: _Order, result: Result) -> None:
        try:
            order.deliver(order.key, order.body, result)
        except Exception:
            pass
        with self._changed:
            self._pending.discard(order.key)
            if isinstance(result, StageFailure):
                self._failed.add(order.key)
            self._changed.notify_all()


_lock = threading.Lock()
_the_workshop: Optional[Workshop] = None


def workshop() -> Workshop:
    """The process's own."""
    global _the_workshop
    with _lock:
        if _the_workshop is None:
            _the_workshop = Workshop()
            # After the build's own pools have asked for their joining at exit, so that this comes before
            # them.
            import concurrent.futures.thread  # noqa: F401
            atexit.register(_stop_at_exit)
        return _the_workshop


def unavailable(key: str) -> bool:
    """As Workshop.unavailable, of the process's own; False where there is none."""
    return _the_workshop is not None and _the_workshop.unavailable(key)


def _stop_at_exit() -> None:
    _the_workshop.stop()
    toolchain.stop_all()


__all__: Tuple[str, ...] = ("TOGETHER", "Workshop", "unavailable", "workshop")
