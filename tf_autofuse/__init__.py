"""TF-AutoFuse: fuses chains of light TensorFlow 1.15 ops into generated Ascend C kernels."""

__version__ = "0.1.0"
