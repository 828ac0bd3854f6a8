"""The file that --skip_node_names_cfg names: TF nodes that must stay as they are.

    [ByNodeName]          names of nodes, one a line; * and ? match as in file names
    tower/relu_1
    tower/head/*
    [ByNodeType]          op types
    Softplus              # a comment

On exit every pattern is a plain string, in the file's order, once.
"""
import fnmatch
import re
from dataclasses import dataclass
from typing import Callable, Dict, List, Optional, Tuple

from tf_autofuse.config_values import nearest_of

BY_NAME = "ByNodeName"
BY_TYPE = "ByNodeType"


@dataclass(frozen=True)
class SkipList:
    """Patterns for node names and for op types."""

    names: Tuple[str, ...] = ()
    types: Tuple[str, ...] = ()

    def reason(self, node: str, op: str) -> Optional[str]:
        """Why this node is skipped, or None. Case matters, as it does in TF."""
        for pattern in self.names:
            if fnmatch.fnmatchcase(node, pattern):
                return "its name matches %s in the skip list" % pattern
        for pattern in self.types:
            if fnmatch.fnmatchcase(op, pattern):
                return "its type matches %s in the skip list" % pattern
        return None


def parse_skip_list(text: str, remark: Callable[[str, Optional[str]], None]) -> SkipList:
    """Reads the file's text. What can't be used goes to remark(what is wrong, nearest) and is left out."""
    sections: Dict[str, List[str]] = {BY_NAME: [], BY_TYPE: []}
    known = {name.lower(): name for name in sections}
    current: Optional[List[str]] = None
    lost = False  # below a section header that nobody knows: said once, for the header
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#", 1)[0].strip()
        if not line:
            continue
        header = re.match(r"^\[\s*(.*?)\s*\]$", line)
        if header:
            name = known.get(header.group(1).lower())
            current, lost = (sections[name], False) if name else (None, True)
            if name is None:
                remark(
                    "line %d: the section [%s] is neither [%s] nor [%s]"
                    % (number, header.group(1), BY_NAME, BY_TYPE),
                    nearest_of(header.group(1), sections),
                )
        elif current is not None:
            for word in (part.strip() for part in line.split(",")):
                if word and word not in current:
                    current.append(word)
        elif not lost:
            lost = True
            remark(
                "line %d stands before any section; [%s] or [%s] must come first"
                % (number, BY_NAME, BY_TYPE),
                None,
            )
    return SkipList(tuple(sections[BY_NAME]), tuple(sections[BY_TYPE]))
