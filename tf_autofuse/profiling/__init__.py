"""What ran, how long it took, and how long the NPU would take: records, models and exports.

    records.py      PROF_* folders: what a profiled session writes, and reading it back
    npu_time.py     the modelled time of one op on a chip, by pipe
    one_op.py       a TF op as a kernel of its own
    heavy_ops.py, heavy_table.py, cube_time.py    matrix products, pooling and others that are never fused
    graph_time.py   a whole graph's kernels with and without fusion, from its columns
    instructions.py, simulator.py, kernel.py    a kernel on the twin, by instructions, through the pipes
    op_summary.py   the rows of op_summary_*.csv
    timeline.py     a Chrome / Perfetto timeline
    export.py       a PROF_* folder -> mindstudio_profiler_output/

Nothing here imports TensorFlow; frontend/profiler.py does the recording.
"""
