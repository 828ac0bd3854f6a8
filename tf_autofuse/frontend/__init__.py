"""The only package that imports tensorflow: native passes, the graph rewrite, the npu_bridge face."""
import sys

if sys.version_info[:2] != (3, 7):
    raise ImportError(
        "tf_autofuse.frontend needs TensorFlow 1.15, which exists for Python 3.7 and older only; this is "
        "Python %d.%d (%s). The other packages of tf_autofuse work on Python 3.7 to 3.11."
        % (sys.version_info[0], sys.version_info[1], sys.executable))
