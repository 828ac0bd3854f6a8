"""Every setting of TF-AutoFuse, one row each: the only place where a setting's name, type, range, default and
meaning are written down. config.py reads values by it, docs/flags.md is made from it, `configure` checks
names against it.

Names and defaults of the AUTOFUSE_FLAGS, AUTOFUSE_DFX_FLAGS and NPU parameter_map settings are those of
CANN's AutoFuse and TF Adapter; the others are this project's. A row's `effect` is true of this version:
tests/test_config_effect.py compares it with the code.
"""
from dataclasses import dataclass
from typing import Any, Tuple

from tf_autofuse.config_values import Bool, Bytes, Choice, Int, Kind, Pattern, Soc, Words
from tf_autofuse.machine import DEFAULT_SOC, MACHINES

FLAGS = "AUTOFUSE_FLAGS"
DFX = "AUTOFUSE_DFX_FLAGS"
PARAMETERS = "parameter_map"
ENVIRONMENT = "environment"
API = "API"

#: Effects of a row.
NOW = "now"        # the setting does what `meaning` says
LATER = "later"    # it is read and checked; what it does comes with a later version
NONE = "none"      # it belongs to the NPU route's own options and means nothing here

#: Kernel families beyond elementwise and broadcast, which are always on.
FAMILIES = ("reduce", "concat", "slice", "split", "transpose", "gather", "matmul", "conv")
ALWAYS_ON = ("elementwise", "broadcast")


@dataclass(frozen=True)
class Row:
    """One setting. field: its name in Config and in the API. place: FLAGS, DFX, PARAMETERS or ENVIRONMENT,
    where it is at home; key: its name there. parameter: its name in the parameter_map, '' where it can't be
    set there; alias: another name there. code: whether its value can change the code that is generated for
    one and the same fused graph (it is then part of Config.cache_key). later: values whose effect comes later
    although the row's is NOW."""

    field: str
    place: str
    key: str
    kind: Kind
    default: Any
    meaning: str
    effect: str = NOW
    parameter: str = ""
    code: bool = False
    later: Tuple[str, ...] = ()
    alias: str = ""

    @property
    def places(self) -> Tuple[str, ...]:
        """Where it may be set, the strongest first (the order in which config.py looks)."""
        home = (self.place,) if self.place != PARAMETERS else ()
        return ((PARAMETERS,) if self.parameter else ()) + (API,) + home


def _flag(field, kind, default, meaning, effect=NOW, key="", code=False, later=()) -> Row:
    return Row(field, FLAGS, key or field, kind, default, meaning, effect, key or field, code, later)


def _dfx(field, kind, default, meaning, effect=NOW, key="", code=False, later=()) -> Row:
    return Row(field, DFX, key or field, kind, default, meaning, effect, key or field, code, later)


def _env(field, key, kind, default, meaning, effect=NOW, parameter="", code=False, later=()) -> Row:
    return Row(field, ENVIRONMENT, key, kind, default, meaning, effect, parameter, code, later)


def _npu(key, kind, default, meaning, effect=NOW, code=False, alias="") -> Row:
    return Row(key, PARAMETERS, key, kind, default, meaning, effect, key, code, alias=alias)


_PRECISION_MODES = (
    "force_fp16", "allow_fp32_to_fp16", "must_keep_origin_dtype", "allow_mix_precision", "force_fp32",
    "cube_fp16in_fp32out", "allow_mix_precision_fp16", "allow_mix_precision_bf16", "allow_fp32_to_bf16")
_TILING_CASE = r"^(\d+(_R)?|g\d+_\d+(_R)?(,g\d+_\d+(_R)?)*)$"

FLAG_ROWS: Tuple[Row, ...] = (
    _flag("enable_autofuse", Bool(), False, "The master switch. Off: the graph is left as it is."),
    _flag("enable_pass", Words(words=FAMILIES), (),
          "Kernel families to fuse on top of elementwise and broadcast, which are always on. Unset: none on "
          "the ascend target, all on the host target. matmul and conv are not there yet.",
          key="autofuse_enable_pass"),
    _flag("disable_pass", Words(words=FAMILIES), (),
          "Kernel families to leave out; wins over autofuse_enable_pass. On the ascend target it is read "
          "only where that is set.",
          key="autofuse_disable_pass"),
    _flag("enhance_precision_blacklist", Words(allowed="a comma list of AscIR types, or all"), (),
          "AscIR types that compute in float16 or bfloat16 themselves instead of in float32 inside a "
          "fused region; Sum, Mean and Prod always compute in float32.",
          code=True, key="autofuse_enhance_precision_blacklist"),
    _flag("max_fusion_size", Int(low=0, high=2 ** 64 - 1), 64, "Most loop nodes in one fused op."),
    _flag("recomputation_threshold", Int(low=0, high=255), 1,
          "How many consumers may each compute a value again instead of reading it from memory."),
    _flag("enable_pgo", Bool(), False,
          "Choose tilings of the ascend target by measuring them when a kernel is built: on the simulator, "
          "for the dims that are known then.",
          code=True, key="autofuse_enable_pgo"),
    _flag("enable_jit_executor", Bool(), False,
          "CANN's experimental run-time compilation of dynamic shapes.",
          LATER, key="experimental_enable_jit_executor_v2"),
)

DFX_ROWS: Tuple[Row, ...] = (
    _dfx("att_algorithm", Choice(words=("AxesReorder", "HighPerf")), "AxesReorder",
         "The solver that picks tile sizes. HighPerf searches longer and goes by the model alone.",
         key="autofuse_att_algorithm", code=True),
    _dfx("att_accuracy_level", Int(low=0, high=1), 1,
         "0 skips AxesReorder's search for better tilings after the first legal one.", code=True),
    _dfx("att_enable_multicore_ub_tradeoff", Bool(), False,
         "AxesReorder weighs UB use against the number of busy cores by the two thresholds, not by the "
         "model.",
         code=True),
    _dfx("att_ub_threshold", Int(low=0, high=100), 20,
         "Percent of UB below which a tile may not shrink in that trade.", code=True),
    _dfx("att_corenum_threshold", Int(low=0, high=100), 40,
         "Percent of the cores up to which tiles shrink in that trade.", code=True),
    _dfx("att_profiling", Bool(), False,
         "Log each tiling on stderr: the kernel, how long the tiling function took, blocks and tiling key.",
         code=True),
    _dfx("att_enable_small_shape_strategy", Bool(), False,
         "Where launch and starts of pipes are at least half of the modelled time, take the fewest cores "
         "that are at most 5 % slower.",
         code=True),
    _dfx("enable_tiling_cache", Bool(), False,
         "Keep tiling results, in memory and between runs in a file beside the built kernel.",
         key="autofuse_enable_tiling_cache", code=True),
    _dfx("force_schedule_result", Int(low=-1, high=100), -1,
         "Take this schedule result where it has a tiling (0: reduced axes whole in UB, 1: in parts); -1: "
         "the best.",
         code=True),
    _dfx("force_tiling_case", Pattern("N, N_R or gX_Y, gX_Y_R, separated by commas", expression=_TILING_CASE),
         "",
         "Take this tiling case where it has a tiling (of loop nest X the variant Y; _R: it cuts a reduced "
         "axis) instead of the best.",
         code=True),
    _dfx("force_template_op_name", Kind(), "",
         "Only the named fused op obeys the force_ settings.", code=True),
    _dfx("pgo_algo", Choice(words=("core_select", "pruning")), "core_select",
         "What is measured. core_select: the modelled best of each number of cores; pruning: tiles on "
         "numbers of cores, without those that are modelled far slower.",
         key="autofuse_pgo_algo"),
    _dfx("pgo_step_max", Int(low=1, high=1024), 16,
         "Largest step between measured numbers of cores, and between tile sizes in units of the smallest.",
         key="autofuse_pgo_step_max"),
    _dfx("pgo_topn", Int(low=0), 5,
         "How many of the best measured tilings are kept in the record; 0: all. The best is used.",
         key="autofuse_pgo_topn"),
    _dfx("codegen_compile_debug", Bool(), False,
         "Keep one folder a region in debug_dir: the dump of each stage, the sources, the compile "
         "command, and repro.py, which rebuilds and reruns the region alone."),
    _dfx("debug_dir", Kind("a folder"), "", "Where codegen_compile_debug writes; unset: ./autofuse_debug."),
    _dfx("disable_lifting", Bool(), False,
         "Keep regions of a single op fused instead of giving them back to TF."),
    _dfx("subgraph_recover", Kind(), "",
         "CANN's switch to give failed regions back to the graph; here every failed region is given back.",
         NONE),
    _dfx("replace_kernel", Kind("a folder"), "",
         "Take kernel sources from this folder where it has them; it is laid out as debug_dir is."),
    _dfx("skip_node_names_cfg", Kind("the path of an ini file"), "",
         "Nodes never to fuse: sections [ByNodeName] and [ByNodeType], one name a line, * and ? allowed, "
         "# begins a comment."),
)

ENVIRONMENT_ROWS: Tuple[Row, ...] = (
    _env("target", "AUTOFUSE_TARGET", Choice(words=("auto", "ascend", "host")), "auto",
         "What kernels are generated for. ascend: Ascend C, which runs on the host twin where no NPU is "
         "present. host: C for this machine's CPU. auto: ascend where an NPU is present, else host.",
         parameter="autofuse_target"),
    _env("cache_dir", "AUTOFUSE_CACHE_DIR", Kind("a folder"), "", "Where built kernels are kept; unset: "
         "$XDG_CACHE_HOME/tf_autofuse, else ~/.cache/tf_autofuse."),
    _env("cache_size", "AUTOFUSE_CACHE_SIZE", Bytes(), 2 << 30,
         "Most bytes of built kernels to keep; the least recently used go first."),
    _env("tensor_memory", "AUTOFUSE_TENSOR_MEMORY", Bytes(), 4 << 30,
         "Most bytes of freed tensors of 64 KiB and more that sessions on the host target keep for their "
         "next ones. 0: none, all memory is malloc's. None are kept either where MALLOC_MMAP_THRESHOLD_ and "
         "the like, GLIBC_TUNABLES or another malloc say how the process allocates.",
         parameter="autofuse_tensor_memory"),
    _env("strict", "AUTOFUSE_STRICT", Bool(), False,
         "Turn a failure of the plugin, an unknown setting and a bad value into an error. For CI."),
    _env("build", "AUTOFUSE_BUILD", Choice(words=("auto", "sync", "async", "cached")), "auto",
         "sync: a graph's first run waits for its kernels. async: TF's own ops run until they are there. "
         "auto: sync for up to 5 seconds, then async. "
         "cached: call no compiler, what is not in the cache stays as TF has it."),
    _env("twin_check", "AUTOFUSE_TWIN_CHECK", Bool(), True,
         "Check every Ascend C call of a kernel that runs on the host twin (UB bounds, alignment, queues, "
         "hazards)."),
    _env("verbose", "AUTOFUSE_VERBOSE", Int(low=0, high=2), 0,
         "0: warnings only. 1: also one line a graph, and settings without effect. 2: also one line a "
         "region."),
    _env("cxx", "CXX", Kind("a command"), "", "The host's C++ compiler; unset: g++, clang++ or c++ on PATH."),
    _env("ascend_home", "ASCEND_HOME_PATH", Kind("a folder"), "",
         "The CANN toolkit. With it and its libascendcl the ascend target builds kernels for the NPU and "
         "runs them there (docs/npu.md); its hardware description wins over the built-in one."),
    _env("ascend_toolkit_home", "ASCEND_TOOLKIT_HOME", Kind("a folder"), "",
         "The CANN toolkit where ASCEND_HOME_PATH is not set."),
    _env("ascend_device", "ASCEND_DEVICE_ID", Int(low=0, high=1023), 0, "The NPU that kernels run on."),
    _env("dump_ge_graph", "DUMP_GE_GRAPH", Int(low=0, high=3), 0,
         "Write the graph before and after fusion as .pbtxt. 1: all of it, 2: without the values of "
         "constants, 3: names, ops and edges."),
    _env("dump_graph_level", "DUMP_GRAPH_LEVEL", Int(low=1, high=3), 2,
         "1: with function bodies, 2: without, 3: only the graph after fusion."),
    _env("dump_graph_path", "DUMP_GRAPH_PATH", Kind("a folder"), "",
         "Where graphs are written; unset: the working directory."),
)

PARAMETER_ROWS: Tuple[Row, ...] = (
    _npu("graph_run_mode", Int(low=0, high=1), 1,
         "0: inference, 1: training. Sets the default of precision_mode."),
    _npu("precision_mode", Choice(words=_PRECISION_MODES), "",
         "Which Casts are inserted, as the NPU route does it. Unset: force_fp16 for inference and "
         "allow_fp32_to_fp16 for training on the ascend target, must_keep_origin_dtype on the host "
         "target."),
    _npu("soc_version", Soc(words=tuple(MACHINES)), "",
         "The NPU that kernels are planned for, with or without Ascend in front; unset: %s." % DEFAULT_SOC,
         code=True, alias="soc_config"),
    _npu("profiling_mode", Bool(), False, "Record the time of each op of each run in a PROF_* folder."),
    _npu("profiling_options", Kind("JSON"), "",
         "A JSON object: output, the folder for PROF_* folders (default: the working folder); task_trace, "
         "off to record nothing."),
)

# The NPU route's own options (CANN's TF Adapter). They steer its runtime, not fusion: accepted, without
# effect here.
_WITHOUT_EFFECT = """
aicore_num all_tensor_not_empty aoe_config_file aoe_mode atomic_clean_policy auto_multistream_parallel_mode
auto_tune_mode buffer_optimize compile_dynamic_mode compress_weight_conf customize_dtypes deterministic
device_type distribute_config dump_data dump_debug_mode dump_layer dump_mode dump_path dump_step dynamic_dims
dynamic_graph_execute_mode dynamic_input dynamic_inputs_shape_range dynamic_node_type enable_compress_weight
enable_data_pre_proc enable_dump enable_dump_debug enable_exception_dump enable_scope_fusion_passes
enable_small_channel es_cluster_config event_sync_timeout export_compile_stat external_weight frozen_variable
fusion_switch_file graph_compiler_cache_dir graph_exec_timeout graph_max_parallel_model_num
graph_memory_max_size graph_slice hccl_timeout HCCL_algorithm hcom_multi_mode hcom_parallel in_out_pair
in_out_pair_flag input_batch_cpy input_fusion_size input_shape insert_op_file iterations_per_loop jit_compile
job local_device_list local_rank_id logical_device_cluster_deploy_mode logical_device_id lower_functional_ops
memory_config min_group_size mix_compile_mode model_deploy_mode model_deploy_devicelist modify_mixlist
op_compiler_cache_dir op_compiler_cache_mode op_debug_config op_debug_level op_execute_timeout
op_precision_mode op_select_implmode op_tune_mode op_wait_timeout oo_level optimization_switch
optypelist_for_implmode precision_mode_v2 quant_dumpable resource_config_path session_device_id
shape_generalization_mode static_memory_policy stream_max_parallel_num stream_sync_timeout task_index
topo_sorting_mode use_off_line variable_format_optimize variable_location variable_memory_max_size work_path
is_tailing_optimization
"""

NPU_ONLY: Tuple[str, ...] = tuple(sorted(set(_WITHOUT_EFFECT.split()), key=lambda name: (name.lower(), name)))

ROWS: Tuple[Row, ...] = FLAG_ROWS + DFX_ROWS + ENVIRONMENT_ROWS + PARAMETER_ROWS
BY_FIELD = {row.field: row for row in ROWS}
