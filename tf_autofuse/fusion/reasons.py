"""Why something is not fused, as values: a code with one meaning each, kept for `explain`.

NF1xxx are GE's codes for refused pairs where ours mean the same; NF2xxx are ours, for single nodes (20xx) and
for pairs (21xx). Texts name the kind of obstacle; the sentence with the particulars is in the verdict.
"""

from typing import Dict, NamedTuple


class Code(NamedTuple):
    """name: NF + number; text: what the obstacle is; remedy: what a user can do about it, '' for nothing."""

    name: str
    text: str
    remedy: str = ""


# Pairs: GE's numbers.
NO_SHARED_DATA = Code("NF1001", "the two share no tensor")
CYCLE = Code("NF1002", "fusing the two would make a cycle through ops outside")
PEAK_MEMORY = Code("NF1003", "side by side, the outputs would take too much memory")
AXES = Code("NF1006", "the loop axes cannot be unified")
TOO_MANY_INPUTS = Code("NF1007", "the fused op would have too many inputs")
NODE_LIMIT = Code("NF1010", "the fused op would have too many loop nodes", "raise max_fusion_size")

# Pairs: ours.
DEVICES = Code("NF2101", "the two are placed on different devices")
FRAMES = Code("NF2102", "the two are in different while frames")
LIVENESS = Code("NF2103", "the two run under different conditions (tf.cond branches)")
VIEW_COPY = Code("NF2104", "a view would be stored as a copy")
GATHERED = Code("NF2105", "a gather reads a tensor that has to be in memory first")

TOO_MANY_NESTS = Code("NF2106", "the fused op would have too many loop nests")

# Single nodes.
NO_ROW = Code("NF2001", "the op table has no such op")
DTYPE = Code("NF2002", "TF has no CPU kernel of the op for the dtype, or the plugin does not know the dtype")
TARGET = Code("NF2003", "the target cannot compute it")
UNKNOWN_RANK = Code(
    "NF2004", "the rank of a tensor is unknown", "give placeholders a shape with a known rank"
)
NOT_CPU = Code("NF2005", "the op is placed on another device than the CPU")
STATEFUL = Code("NF2006", "the op is stateful")
REFERENCE = Code("NF2007", "a tensor is a reference to a variable", "use resource variables")
CLAIMED = Code("NF2008", "another compiler has claimed the op")
SKIPPED_NAME = Code("NF2009", "the op's name is in the skip list", "edit the file of --skip_node_names_cfg")
SKIPPED_TYPE = Code("NF2010", "the op's type is in the skip list", "edit the file of --skip_node_names_cfg")
SKIPPED_SCOPE = Code("NF2011", "the op is marked _disable_autofuse_scope")
BARRIER = Code("NF2012", "an op that only orders others (it has control edges)")
REFUSED = Code("NF2013", "the op's lowering refuses this instance")
SHAPES = Code("NF2014", "the shapes do not allow it")
CONSTANT_INPUTS = Code("NF2015", "the op reads constants only: left to constant folding")
LIFTED = Code(
    "NF2016",
    "fewer than two computing ops: TF's own op is as good",
    "--disable_lifting=true keeps such regions",
)
UNREADABLE_SIZE = Code("NF2017", "a run-time size cannot be read from the fused op's inputs")
CONSTANT = Code("NF2018", "a constant, read from outside")
OUTSIDE_INPUT = Code("NF2019", "an input cannot be passed to a fused op")
OUTPUT_OUTSIDE = Code("NF2020", "an op with several outputs, of which something outside reads one")
FAMILY = Code(
    "NF2022",
    "the op's family is off",
    "name it in --autofuse_enable_pass, or take it out of --autofuse_disable_pass",
)
SIZES = Code("NF2021", "it computes sizes of tensors, which fused ops know already")

FUSED = Code("", "fused")

ALL_CODES: Dict[str, Code] = {
    code.name: code
    for code in (
        NO_SHARED_DATA,
        CYCLE,
        PEAK_MEMORY,
        AXES,
        TOO_MANY_INPUTS,
        NODE_LIMIT,
        DEVICES,
        FRAMES,
        LIVENESS,
        VIEW_COPY,
        GATHERED,
        TOO_MANY_NESTS,
        NO_ROW,
        DTYPE,
        TARGET,
        UNKNOWN_RANK,
        NOT_CPU,
        STATEFUL,
        REFERENCE,
        CLAIMED,
        SKIPPED_NAME,
        SKIPPED_TYPE,
        SKIPPED_SCOPE,
        BARRIER,
        REFUSED,
        SHAPES,
        CONSTANT_INPUTS,
        LIFTED,
        UNREADABLE_SIZE,
        CONSTANT,
        OUTSIDE_INPUT,
        OUTPUT_OUTSIDE,
        SIZES,
        FAMILY,
    )
}


class Verdict(NamedTuple):
    """Whether a pair may be fused. score orders the pairs that may (smaller first); code and reason say why
    not."""

    ok: bool
    code: Code = FUSED
    reason: str = ""
    score: tuple = ()


class NodeVerdict(NamedTuple):
    """Why a node is not fused."""

    code: Code
    reason: str
