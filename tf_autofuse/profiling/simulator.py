"""An event simulation of the cores' pipes over the trace of one launch on the twin.

The machine. A core issues in program order to S (its scalar unit), V, MTE2 and MTE3; each pipe works its
instructions off one after the other, all pipes at once. A flag that pipe A sets makes what pipe B is issued
behind the wait start after A's last instruction before the set; EnQue/DeQue and FreeTensor/AllocTensor are
such pairs, so double buffering comes out of the trace. A wait of S holds back whatever is issued after it.
SyncAll holds back every core until all have come. Copies share GM: `instructions.FLOWS` gives the rate for
the number of cores that are copying on that pipe at the moment, so a core that has run out of work leaves its
share to the others. Every pipe is ready `LAUNCH` and its head after the launch, as the published model has
them.

Not modelled, as no public figure exists: issue and scalar arithmetic, code fetch, the copy of the tiling
data, the cost of a flag, a barrier or a SyncAll by itself; and L2, as the published copy rates are below
those of GM and of L2 alike. docs/npu-model.md says what that means.

On entry the records of all blocks of one launch, those of a block in order of issue. On exit a `Simulation`;
nothing is kept.
"""
import heapq
from typing import Dict, Iterable, List, NamedTuple, Tuple

from tf_autofuse.machine import Machine
from tf_autofuse.profiling.instructions import FLOWS, cost_of
from tf_autofuse.runtime.library import Traced
from tf_autofuse.tiling import cost_table as table

PIPES = ("S", "V", "MTE2", "MTE3")


class Span(NamedTuple):
    """One instruction on one pipe of one block, in cycles from the launch."""

    block: int
    pipe: str
    api: str
    start: float
    end: float
    file: str
    line: int


class Simulation(NamedTuple):
    """cycles: from the launch to the end of the last block. block_cycles: the end of each block. busy: per
    pipe and block, the cycles in which it works. overlapped: cycles if the pipes never waited for each other
    (launch, and the slowest pipe of the slowest block), the analytic model's assumption. spans: in order of
    their start."""

    cycles: float
    block_cycles: Tuple[float, ...]
    busy: Dict[str, Tuple[float, ...]]
    overlapped: float
    spans: Tuple[Span, ...]

    def microseconds(self, machine: Machine, cycles: float = -1.0) -> float:
        """The whole launch (or `cycles`) in microseconds of the machine's clock."""
        return (self.cycles if cycles < 0 else cycles) / machine.clock_mhz

    def mean_busy(self, pipe: str) -> float:
        """Cycles, the mean over blocks."""
        return sum(self.busy[pipe]) / max(1, len(self.busy[pipe]))


def simulate(records: Iterable[Traced], block_dim: int) -> Simulation:
    """Raises ValueError for a wait without a set, or blocks that do not all meet in SyncAll."""
    graph = _Graph(block_dim)
    per_block: List[List[Traced]] = [[] for _ in range(block_dim)]
    for r in records:
        per_block[r.block].append(r)
    heads = _heads(per_block, block_dim)
    for block, of_block in enumerate(per_block):
        graph.add_block(block, of_block, heads)
    if graph.meetings and len({len(m) for m in graph.meetings}) != 1 or any(
            len(m) != block_dim for m in graph.meetings):
        raise ValueError("not all of the %d blocks reach every SyncAll" % block_dim)
    return graph.run(heads)


def _heads(per_block, block_dim: int) -> Dict[str, float]:
    """When each pipe is ready."""
    largest = max((r.bytes for rs in per_block for r in rs if r.pipe == "MTE2" and r.kind == "instruction"),
                  default=0)
    head = table.LOAD_HEAD_LARGE if largest >= table.DMA_LARGE_BYTES else table.LOAD_HEAD_SMALL
    return {"S": table.LAUNCH, "V": table.LAUNCH + table.VECTOR_HEAD, "MTE3": table.LAUNCH + table.STORE_HEAD,
            "MTE2": table.LAUNCH + head.per_block * block_dim + head.b}


class _Graph:
    """Instructions as nodes: `waits[i]` counts what node i still waits for, `after[i]` are the nodes that
    wait for it. A node's predecessors are older than it, but for those of a meeting of all blocks."""

    def __init__(self, block_dim: int):
        self.block_dim = block_dim
        self.waits: List[int] = []
        self.after: List[List[int]] = []
        self.costs: list = []
        self.places: List[Tuple[int, str]] = []
        self.records: list = []
        self.meetings: List[List[int]] = []
        self.joints: List[int] = []

    def _node(self, block: int, pipe: str, before, cost, record=None) -> int:
        node = len(self.waits)
        before = set(before)
        self.waits.append(len(before))
        self.after.append([])
        for b in before:
            self.after[b].append(node)
        self.costs.append(cost)
        self.places.append((block, pipe))
        self.records.append(record)
        return node

    def add_block(self, block: int, records: List[Traced], heads: Dict[str, float]) -> None:
        free = (0.0, "", 0.0)
        # What the next instruction of a pipe waits for.
        state = {p: [self._node(block, "", (), (heads[p], "", 0.0))] for p in PIPES}
        flags: Dict[Tuple[str, str, int], List[List[int]]] = {}
        met = 0
        for r in records:
            if r.kind == "instruction":
                state[r.pipe] = [self._node(block, r.pipe, state[r.pipe] + state["S"], cost_of(r), r)]
            elif r.kind == "set flag":
                flags.setdefault((r.source, r.target, r.event), []).append(state[r.source] + state["S"])
            elif r.kind == "wait flag":
                sets = flags.get((r.source, r.target, r.event))
                if not sets:
                    raise ValueError("block %d: %s:%d waits for flag %s_%s %d, which is not set"
                                     % (block, r.file, r.line, r.source, r.target, r.event))
                state[r.target] = [self._node(block, "", state[r.target] + sets.pop(0), free)]
            elif r.pipe == "ALL":
                joint = self._node(block, "", [n for p in PIPES for n in state[p]], free)
                if r.kind == "all blocks":
                    joint = self._meet(met, joint)
                    met += 1
                state = {p: [joint] for p in PIPES}

    def _meet(self, number: int, node: int) -> int:
        """The node that all blocks' n-th SyncAll leads to."""
        if number == len(self.meetings):
            self.meetings.append([])
            self.joints.append(self._node(-1, "", (), (0.0, "", 0.0)))
        self.meetings[number].append(node)
        joint = self.joints[number]
        self.after[node].append(joint)
        self.waits[joint] += 1
        return joint

    def run(self, heads: Dict[str, float]) -> Simulation:
        starts, ends = [0.0] * len(self.waits), [0.0] * len(self.waits)
        fixed: List[Tuple[float, int]] = []  # (time, node) when the fixed part ends
        flows = _Flows()
        now = 0.0
        done: List[int] = []

        def start(node: int) -> None:
            starts[node] = now
            cost = self.costs[node]
            if cost[1]:
                flows.join(cost[1], now)
            heapq.heappush(fixed, (now + cost[0], node))

        ready = [n for n, w in enumerate(self.waits) if w == 0]
        while True:
            for node in ready:
                start(node)
            ready = []
            flow_time, kind = flows.next()
            if fixed and fixed[0][0] <= flow_time:
                now, node = heapq.heappop(fixed)
                cost = self.costs[node]
                if cost[1]:
                    flows.push(cost[1], node, cost[2], now)
                    continue
            elif kind:
                now = flow_time
                node = flows.pop(kind, now)
            else:
                break
            ends[node] = now
            done.append(node)
            for n in self.after[node]:
                self.waits[n] -= 1
                if self.waits[n] == 0:
                    ready.append(n)
        assert len(done) == len(self.waits), "the records of a launch that ended have no cycle"
        return self._result(starts, ends, heads)

    def _result(self, starts, ends, heads: Dict[str, float]) -> Simulation:
        block_cycles = [0.0] * self.block_dim
        busy = {p: [0.0] * self.block_dim for p in PIPES}
        spans = []
        for node, (block, pipe) in enumerate(self.places):
            if block < 0:
                continue
            if pipe:
                block_cycles[block] = max(block_cycles[block], ends[node])
                busy[pipe][block] += ends[node] - starts[node]
                r = self.records[node]
                spans.append(Span(block, pipe, r.api, starts[node], ends[node], r.file, r.line))
        spans.sort(key=lambda s: (s.start, s.block, s.end))
        overlapped = max([table.LAUNCH] + [heads[p] + b for p in PIPES for b in busy[p] if b])
        return Simulation(max([table.LAUNCH] + block_cycles), tuple(block_cycles),
                          {p: tuple(b) for p, b in busy.items()}, overlapped, tuple(spans))


class _Flows:
    """Transfers under way. All of a kind go at one rate, so each kind has a clock that counts how much one of
    them has moved since the beginning: a transfer of `amount` ends when the clock has gone on by that
    much."""

    def __init__(self):
        self.cores = {pipe: 0 for pipe, _ in FLOWS.values()}
        self.clock = {kind: 0.0 for kind in FLOWS}
        self.heaps: Dict[str, List[Tuple[float, int]]] = {kind: [] for kind in FLOWS}
        self.time = 0.0

    def _rate(self, kind: str) -> float:
        pipe, rate = FLOWS[kind]
        return rate(max(1, self.cores[pipe]))

    def _advance(self, now: float) -> None:
        if now > self.time:
            for kind in FLOWS:
                if self.heaps[kind]:
                    self.clock[kind] += (now - self.time) * self._rate(kind)
            self.time = now

    def join(self, kind: str, now: float) -> None:
        """A transfer of this kind begins (its fixed part first): its pipe is shared by one core more."""
        self._advance(now)
        self.cores[FLOWS[kind][0]] += 1

    def push(self, kind: str, node: int, amount: float, now: float) -> None:
        self._advance(now)
        heapq.heappush(self.heaps[kind], (self.clock[kind] + amount, node))

    def next(self) -> Tuple[float, str]:
        """When the next transfer ends, and its kind; (infinity, '') for none."""
        best = (float("inf"), "")
        for kind, heap in self.heaps.items():
            if heap:
                left = max(0.0, heap[0][0] - self.clock[kind])
                best = min(best, (self.time + left / self._rate(kind), kind))
        return best

    def pop(self, kind: str, now: float) -> int:
        self._advance(now)
        self.cores[FLOWS[kind][0]] -= 1
        return heapq.heappop(self.heaps[kind])[1]
