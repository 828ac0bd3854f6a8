"""What the plugin did in this process: one record a graph, the newest last, for explain, reports and the
demo.

Kept in memory only and bounded; records are immutable once added.
"""
import collections
import dataclasses
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Deque, Mapping, Tuple

if TYPE_CHECKING:  # importing it takes longer than a kept answer
    from tf_autofuse.compiler import Compilation

_KEPT = 256
_lock = threading.Lock()
_records: Deque["GraphRecord"] = collections.deque(maxlen=_KEPT)


@dataclass(frozen=True)
class GraphRecord:
    """graph: 'graph' or the function's name. node_count: TF nodes before. made: names of the fused ops
    that the pass gave. compile: what became of the graph, made again where the answer came from an
    earlier process. dropped: (fused name, reason) of edits that the native side refused. seconds: the
    whole pass, in seconds."""

    graph: str
    feeds: Tuple[str, ...]
    fetches: Tuple[str, ...]
    node_count: int
    target: str
    config: Any
    made: Tuple[str, ...]
    compile: Callable[[], "Compilation"]
    dropped: Tuple[Tuple[str, str], ...] = ()
    seconds: float = 0.0

    @property
    def compilation(self) -> "Compilation":
        return self.compile()

    @property
    def fused_names(self) -> Tuple[str, ...]:
        refused = {name for name, _ in self.dropped}
        return tuple(name for name in self.made if name not in refused)


def add(record: GraphRecord) -> None:
    with _lock:
        _records.append(record)


def mark_dropped(dropped: Mapping[str, str]) -> None:
    """Adds the native side's refusals to the newest record that has regions of these names."""
    with _lock:
        for i in reversed(range(len(_records))):
            names = set(_records[i].fused_names)
            mine = tuple((n, r) for n, r in dropped.items() if n in names)
            if mine:
                _records[i] = dataclasses.replace(_records[i], dropped=_records[i].dropped + mine)
                return


def records() -> Tuple[GraphRecord, ...]:
    with _lock:
        return tuple(_records)


def clear() -> None:
    with _lock:
        _records.clear()
