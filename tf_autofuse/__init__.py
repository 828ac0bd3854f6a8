"""TF-AutoFuse: fuses chains of light TensorFlow 1.15 ops into generated Ascend C kernels.

`import tf_autofuse` is cheap: it imports no TensorFlow. The native part is loaded when tensorflow is
imported, or at once where it already is; it acts in no session whose ConfigProto does not ask for it. Public
are `configure`, `Config` and `__version__`, nothing else.
"""
import sys

from tf_autofuse.config import Config

__version__ = "0.1.0"
__all__ = ["Config", "__version__", "configure"]


def configure(config_proto, **params):
    """Switches the plugin on for the sessions of a tf.ConfigProto and returns it.

    params: settings by their names in the parameter_map (docs/flags.md), e.g.
    precision_mode="must_keep_origin_dtype"; values are bool, int, float or str. They are put into the
    `custom_optimizers` entry AutofuseOptimizer, which is added once; called again, values are replaced.
    Fusion still needs enable_autofuse=true, here or in AUTOFUSE_FLAGS.

    Raises ImportError where this is not Python 3.7, TypeError for another object or a value of another type,
    ValueError for a setting that does not exist or a value that is not allowed.
    """
    from tf_autofuse.frontend import entry

    return entry.configure(config_proto, params)


if sys.version_info[:2] == (3, 7):
    from tf_autofuse.frontend import activation as _activation

    _activation.install()
