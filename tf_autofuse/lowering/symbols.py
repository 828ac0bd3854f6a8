"""Sizes of a graph's tensors, and how a region names them.

SymbolTable, one a graph: turns the columns' dims into sizes. TF's shape functions give a new run-time dim
where they cannot tell; where lowering can (two dims broadcast, a reshape's -1), it binds that dim's number to
what it found, so that equal sizes stay equal downstream.

RegionSizes, one a region: the same sizes as a kernel sees them: symbols s0, s1, ... numbered by the kernel's
inputs, each with its source. Kernels of the same form thus have the same text whatever graph they come from.
"""

from typing import Dict, FrozenSet, List, Mapping, Optional, Sequence, Set, Tuple

from tf_autofuse.symbolic.guards import Guard, InputDim, SizeVar
from tf_autofuse.symbolic.size import (
    Size,
    SizeExpr,
    broadcast_size,
    exact_quotient,
    floor_div,
    is_static,
    known_equal,
    substitute,
    symbol,
    symbols_of,
)

Dims = Tuple[Size, ...]

#: What a run-time dim without a hint is taken for when sizes are compared for profit.
DEFAULT_HINT = 64


class ShapesDiffer(Exception):
    """The dims are known not to broadcast (or not to be equal); `reason` is a sentence."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


class SymbolTable:
    """columns: the view's `symbols` (origin, dim, hint per run-time dim). bound: run-time dims of which the
    size is known from elsewhere."""

    def __init__(self, columns: Sequence[dict], bound: Optional[Mapping[int, Size]] = None):
        self._columns = columns
        self._known = bound or {}
        self._bound: Dict[int, Size] = dict(self._known)
        self._dims: Dict[tuple, Dims] = {}
        self._broadcasts: Dict[FrozenSet[Size], SizeExpr] = {}
        self._operands: Dict[str, Tuple[Size, ...]] = {}
        self._pairs: Dict[str, List[Tuple[Size, ...]]] = {}
        self._estimates: Dict[Size, int] = {}

    def dims(self, column: Sequence[int]) -> Dims:
        """Sizes of a shape as the columns have it."""
        if not column or min(column) >= 0:
            return tuple(column)
        column = tuple(column)
        found = self._dims.get(column)
        if found is None:
            found = self._dims[column] = tuple(d if d >= 0 else self.size(-d - 1) for d in column)
        return found

    def size(self, number: int) -> Size:
        bound = self._bound.get(number)
        return symbol("d%d" % number) if bound is None else bound

    def is_bound(self, number: int) -> bool:
        return number in self._bound

    def bound(self) -> Dict[int, Size]:
        """The run-time dims that `bind` was called for."""
        return {number: size for number, size in self._bound.items() if number not in self._known}

    def bind(self, number: int, size: Size) -> None:
        """Run-time dim `number` is `size`. To be called before anything else read it."""
        self._bound[number] = size

    def broadcast(self, a: Size, b: Size) -> Tuple[Size, Optional[Guard]]:
        """The dim that TF's broadcasting makes of a and b, and the guard that it needs. Raises
        ShapesDiffer."""
        if a is b or known_equal(a, b):
            return a, None
        if is_static(a) and a == 1:
            return b, None
        if is_static(b) and b == 1:
            return a, None
        if is_static(a) and is_static(b):
            raise ShapesDiffer("dims %d and %d do not broadcast" % (a, b))
        guard = Guard("broadcast", a, b)
        if is_static(a) or is_static(b):
            return (a if is_static(a) else b), guard
        return self._broadcast_symbol(a, b), guard

    def _broadcast_symbol(self, a: SizeExpr, b: SizeExpr) -> SizeExpr:
        operands: List[Size] = []
        for size in (a, b):
            for operand in self.operands_of(size) or (size,):
                if operand not in operands:
                    operands.append(operand)
        key = frozenset(operands)
        for size in (a, b):  # one side is the broadcast of everything on both
            if frozenset(self.operands_of(size) or ()) == key:
                return size
        found = self._broadcasts.get(key)
        if found is None:
            found = self._broadcasts[key] = symbol("b%d" % len(self._broadcasts))
            self._operands[str(found)] = tuple(operands)
        pairs = self._pairs.setdefault(str(found), [])
        if (a, b) not in pairs:
            pairs.append((a, b))
        return found

    def operands_of(self, size: Size) -> Optional[Tuple[Size, ...]]:
        """The sizes that `size` is the broadcast of, where it is a symbol made by `broadcast`."""
        return None if is_static(size) else self._operands.get(str(size))

    def ways_of(self, name: str) -> Tuple[Tuple[Size, ...], ...]:
        """The lists of sizes of which each is enough to compute the broadcast `name`: the dims at the bottom,
        then the pairs that were met. () for other symbols. No list leads back to `name`: its sizes are
        broadcasts of fewer dims."""
        operands = self._operands.get(name)
        return () if operands is None else (operands,) + tuple(self._pairs[name])

    def estimate(self, size: Size) -> int:
        """A guess of the size in numbers: the dims first seen, or DEFAULT_HINT."""
        if is_static(size):
            return size
        found = self._estimates.get(size)
        if found is None:
            values = {name: self._symbol_estimate(name) for name in symbols_of(size)}
            found = self._estimates[size] = max(int(substitute(size, values)), 0)
        return found

    def _symbol_estimate(self, name: str) -> int:
        if name in self._operands:
            return max(self.estimate(o) for o in self._operands[name])
        hint = self.hint(name)
        return DEFAULT_HINT if hint is None else hint

    def hint(self, name: str) -> Optional[int]:
        """The value first seen of the run-time dim that is symbol `name`."""
        if name[0] != "d":
            return None
        number = int(name[1:])
        return self._columns[number].get("hint") if number < len(self._columns) else None


class UnreadableSize(Exception):
    """A size that no dim of the region's inputs tells. symbols: the graph's names of the missing ones."""

    def __init__(self, symbols: Set[str]):
        super().__init__("no input of the region tells the size %s" % ", ".join(sorted(symbols)))
        self.symbols = frozenset(symbols)


class RegionSizes:
    """inputs: the graph's dims of each kernel input. After construction `variables` are the symbols that the
    inputs tell; `local` adds those that are computed from them."""

    def __init__(self, table: SymbolTable, inputs: Sequence[Dims]):
        self._table = table
        self._names: Dict[str, Size] = {}
        self._whole: Dict[Size, Size] = {}
        self.variables: List[SizeVar] = []
        self.guards: List[Guard] = []
        composite: List[Tuple[SizeExpr, InputDim]] = []
        for i, dims in enumerate(inputs):
            for d, dim in enumerate(dims):
                if is_static(dim) or str(dim) in self._names:
                    continue
                if symbols_of(dim) == {str(dim)}:
                    self._names[str(dim)] = self._variable(InputDim(i, d), self._table.hint(str(dim)))
                else:
                    composite.append((dim, InputDim(i, d)))
        for dim, source in composite:
            self._read_composite(dim, source)
        for name in list(self._names):
            self._check_broadcast(name)

    def _variable(self, source, hint: Optional[int] = None) -> SizeExpr:
        name = "s%d" % len(self.variables)
        self.variables.append(SizeVar(name, source, hint))
        return symbol(name)

    def _read_composite(self, dim: SizeExpr, source: InputDim) -> None:
        """An input dim that is an expression: checked where its symbols are known, solved for the one symbol
        that is not where that is exact (64 * s), otherwise a symbol of its own."""
        unknown = [n for n in sorted(symbols_of(dim)) if not self._try_name(n)]
        if not unknown or dim in self._whole:
            return
        whole = self._variable(source)
        factor = exact_quotient(dim, symbol(unknown[0])) if len(unknown) == 1 else None
        if factor is not None and is_static(factor) and factor > 0:
            self._names[unknown[0]] = self._variable(floor_div(whole, factor))
            self.guards.append(
                Guard("eq", whole, self.local(dim), "an input dim is %d times another" % factor)
            )
        self._whole[dim] = whole

    def _try_name(self, name: str) -> bool:
        try:
            self._name(name)
        except UnreadableSize:
            return False
        return True

    def _check_broadcast(self, name: str) -> None:
        """A broadcast dim that an input tells, beside the dims that it is the broadcast of."""
        operands = self._table.operands_of(symbol(name))
        if operands and all(self._try_name(n) for o in operands for n in symbols_of(o)):
            self.guards.append(
                Guard("eq", self._names[name], self._broadcast(operands), "a dim broadcast outside")
            )

    def _broadcast(self, operands: Sequence[Size]) -> Size:
        result = self.local(operands[0])
        for operand in operands[1:]:
            result = broadcast_size(result, self.local(operand))
        return result

    def _name(self, name: str) -> Size:
        found = self._names.get(name)
        if found is None:
            for way in self._table.ways_of(name):
                if all(self._try_name(n) for size in way for n in sorted(symbols_of(size))):
                    found = self._names[name] = self._variable(self._broadcast(way))
                    return found
            raise UnreadableSize({name})
        return found

    def local(self, size: Size) -> Size:
        """`size` in the region's symbols. Raises UnreadableSize."""
        if is_static(size):
            return size
        whole = self._whole.get(size)
        if whole is not None:
            return whole
        missing: Set[str] = set()
        values: Dict[str, Size] = {}
        for name in sorted(symbols_of(size)):
            try:
                values[name] = self._name(name)
            except UnreadableSize as error:
                missing |= error.symbols
        if missing:
            raise UnreadableSize(missing)
        return substitute(size, values)

    def local_dims(self, dims: Sequence[Size]) -> Dims:
        return tuple(self.local(d) for d in dims)
