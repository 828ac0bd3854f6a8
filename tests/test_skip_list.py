"""The file of --skip_node_names_cfg."""
import pytest

from tf_autofuse.config import BAD_VALUE, Config
from tf_autofuse.skip_list import SkipList, parse_skip_list

FILE = """\
# made by hand
[ByNodeName]
tower/relu_1     # this one is slow
tower/head/*, other
tower/relu_1

[ bynodetype ]
Softplus
Log?p
"""


def parsed(text):
    remarks = []
    return parse_skip_list(text, lambda what, nearest: remarks.append((what, nearest))), remarks


def test_sections_comments_and_patterns():
    skip, remarks = parsed(FILE)
    assert skip == SkipList(("tower/relu_1", "tower/head/*", "other"), ("Softplus", "Log?p"))
    assert not remarks


@pytest.mark.parametrize(
    "node,op,skipped",
    [
        ("tower/relu_1", "Relu", True),
        ("tower/relu_10", "Relu", False),
        ("tower/head/a/b", "Add", True),
        ("tower/headless", "Add", False),
        ("x", "Softplus", True),
        ("x", "softplus", False),
        ("x", "Log1p", True),
        ("x", "Log", False),
        ("Softplus", "Add", False),
    ],
)
def test_what_is_skipped(node, op, skipped):
    reason = parsed(FILE)[0].reason(node, op)
    assert (reason is not None) == skipped
    if skipped:
        assert "in the skip list" in reason


def test_what_cannot_be_used_is_told():
    skip, remarks = parsed("stray\nmore\n[ByNodeNames]\nlost\n[ByNodeType]\nAbs\n")
    assert skip == SkipList((), ("Abs",))
    assert [(text.split(" ")[1], nearest) for text, nearest in remarks] == [("1", None), ("3:", "ByNodeName")]


def test_through_the_flag(tmp_path):
    path = tmp_path / "skip list.cfg"
    path.write_text(FILE)
    config = Config.from_sources({"AUTOFUSE_DFX_FLAGS": "--skip_node_names_cfg=%s" % path})
    assert not config.problems
    assert "tower/head/*" in config.skip_reason("tower/head/x", "Add")
    assert config.skip_reason("x", "Add") is None


@pytest.mark.parametrize(
    "make", [lambda path: None, lambda path: path.mkdir(), lambda path: path.write_bytes(b"\xff\xfe")]
)
def test_a_file_that_cannot_be_read(tmp_path, make):
    path = tmp_path / "skip.cfg"
    make(path)
    config = Config.from_sources({"AUTOFUSE_DFX_FLAGS": "skip_node_names_cfg=%s" % path})
    (problem,) = config.problems
    assert problem.kind == BAD_VALUE and "can't be read" in problem.text and config.skip_list == SkipList()
