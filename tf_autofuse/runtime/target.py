"""Which target a session's kernels are for.

`auto` is the ascend target. Where no NPU is present, the ascend target's kernels run on the host twin.
"""
from tf_autofuse.config import Config

ASCEND = "ascend"


def choose_target(config: Config) -> str:
    """The target's name for this config. The host code generator does not exist yet, so every choice is ascend;
    config reports `host` as a value whose effect comes later."""
    return ASCEND
