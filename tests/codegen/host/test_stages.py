"""Functions of functions in loops of their own: what each computes, loads again, and leaves for the next."""
import re

from tests.codegen.host import graphs
from tests.codegen.host.conftest import CASES, MACHINE
from tf_autofuse.codegen.host.lines import Lines
from tf_autofuse.codegen.host.stages import MOST_CARRIED, stages
from tf_autofuse.codegen.sources import HOST_KERNEL
from tf_autofuse.codegen.targets import HOST
from tf_autofuse.ir.builder import HintBuilder
from tf_autofuse.ir.dtypes import FLOAT32
from tf_autofuse.schedule.host_graph import Value


def loops_of(fused):
    """The statements of each marked loop of a kernel."""
    text = HOST.generate(fused, HOST.schedule(fused, MACHINE), MACHINE, None).text(HOST_KERNEL)
    return [loop.split("\n      }")[0] for loop in text.split(Lines.MARK)[1:]]


def test_a_function_behind_a_function_has_a_loop_of_its_own():
    loops = loops_of(CASES["functions"][0])[:3]
    assert [re.findall(r"af_(\w+)_f32", loop) for loop in loops] == [["tanh"], ["sigmoid"], ["exp"]]
    assert [len(re.findall(r"^ *p\d+\[", loop, re.M)) for loop in loops] == [0, 0, 2], "stores come last"


def test_short_rows_stay_whole():
    (loop,) = loops_of(graphs.functions(graphs.S0, 9, CASES["functions"][0].sizes[:1]))
    assert len(re.findall(r"af_\w+_f32", loop)) == 3


def test_functions_side_by_side_stay_in_one_loop():
    b = HintBuilder("beside", [("z0", 900)])
    x = b.load(b.data(0, FLOAT32), (1,))
    b.store(b.op("Add", b.op("Tanh", x), b.op("Exp", x)), 0)
    (loop,) = loops_of(graphs.fused("beside", [b], [(FLOAT32, (900,))], [(FLOAT32, (900,))]))
    assert len(re.findall(r"af_\w+_f32", loop)) == 2


def test_more_than_the_first_cache_would_hold_stays_in_one_loop():
    def cut(count):
        values = [Value("x", "Load", FLOAT32, (), (), frozenset({0}))]
        values += [Value("t%d" % i, "Tanh", FLOAT32, ("x",), (), frozenset({0})) for i in range(count)]
        last = "t0"
        for i in range(count):
            values.append(Value("e%d" % i, "Exp", FLOAT32, ("t%d" % i,), (), frozenset({0})))
            values.append(Value("a%d" % i, "Add", FLOAT32, (last, "e%d" % i), (), frozenset({0})))
            last = "a%d" % i
        by_name = {v.name: v for v in values}
        return stages(by_name, list(by_name), lambda n: by_name[n].inputs)
    assert [len(cut(n).loops) for n in (MOST_CARRIED, MOST_CARRIED + 1)] == [2, 1]
    assert cut(2).carried == {"t0", "t1"}
