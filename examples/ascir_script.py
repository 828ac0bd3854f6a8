"""A graph written by hand with the AscIR Python API: abs, then the maximum of each row, for any number of
rows.

    tf-autofuse run examples/ascir_script.py        (or: python -m tf_autofuse examples/ascir_script.py)

From the graph to its text, its schedule and its Ascend C, then to a result: computed node by node on numpy,
and by the generated kernel on the host twin of the Ascend C API. Both are checked.
"""
import numpy as np

from tf_autofuse import ascir_api

ascir_api.install()  # nothing where upstream's own package is installed

from autofuse.pyautofuse import Autofuser, AutofuserOptions, ascir  # noqa: E402


def build():
    """max(abs(x), axis=1, keep_dims=True) of a float32 x[s0, s1]."""
    graph = ascir.HintGraph("abs_max")
    s0, s1 = graph.create_size("s0"), graph.create_size("s1")
    z0, z1 = graph.create_axis("z0", s0), graph.create_axis("z1", s1)

    data = ascir.ops.Data("data", graph)
    data.attr.ir_attr.index = 0
    data.y.dtype = ascir.dtypes.float32

    load, absolute = ascir.ops.Load("load"), ascir.ops.Abs("abs")
    highest, store, output = ascir.ops.Max("max"), ascir.ops.Store("store"), ascir.ops.Output("output")
    load.x, absolute.x, highest.x, store.x, output.x = data, load, absolute, highest, store
    output.attr.ir_attr.index = 0

    for op in (load, absolute):
        op.attr.sched.axis = op.y.axis = [z0, z1]
        op.y.size, op.y.strides = [s0, s1], [s1, 1]
    for op in (highest, store):  # the reduced axis stays, with size 1 and stride 0
        op.attr.sched.axis = op.y.axis = [z0, z1]
        op.y.size, op.y.strides = [s0, 1], [1, 0]
    graph.infer_dtypes()
    return graph


def main():
    ascir.utils.set_platform("2201", 40, 192 * 1024)
    graph = build()
    print(ascir.utils.debug_str(graph))

    for shape in ((4, 7), (1, 1), (33, 500)):
        x = np.random.RandomState(0).randn(*shape).astype(np.float32)
        expected = np.abs(x).max(axis=1, keepdims=True)
        (evaluated,) = ascir_api.evaluate(graph, [x])
        (computed,) = ascir_api.run(graph, [x])
        assert evaluated.tobytes() == computed.tobytes() == expected.tobytes()
        print("x %-9s: the evaluator and the kernel on the twin give numpy's bits" % (shape,))

    autofuser = Autofuser(AutofuserOptions())
    result = autofuser.schedule(graph)
    tiling_data, tiling, kernel = autofuser.codegen(result)
    print("%s: %d input, %d output; lines of tiling data %d, host %d, kernel %d"
          % ((result.get_name(), result.get_input_num(), result.get_output_num())
             + tuple(text.count("\n") for text in (tiling_data, tiling, kernel))))


if __name__ == "__main__":
    main()
