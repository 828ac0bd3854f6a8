"""The models of the suite: frozen inference graphs with random weights, their feeds and TensorFlow's own
results.

`python -m bench.suite.models FOLDER MODEL BATCH...` makes them in a process of its own (making.py); workers
load them (files.py) from the folder that the environment variable AUTOFUSE_BENCH_MODELS names. A module a
family has the builders, each of which gives (input tensors, output tensors). This module imports no
TensorFlow.
"""
from typing import Dict, NamedTuple, Tuple


class Model(NamedTuple):
    """family: the module here that builds it by the function of the name `builder`; batches: what it is
    measured with, smaller ones for the large nets."""

    family: str
    builder: str
    batches: Tuple[int, ...]


MODELS: Dict[str, Model] = {
    "MMOE": Model("recommendation", "mmoe", (1, 64, 1024)),
    "PLE": Model("recommendation", "ple", (1, 64, 1024)),
    "DIN": Model("recommendation", "din", (1, 64, 1024)),
    "DeepFM": Model("recommendation", "deepfm", (1, 64, 1024)),
    "DCN": Model("recommendation", "dcn", (1, 64, 1024)),
    "BST": Model("recommendation", "bst", (1, 64, 1024)),
    "wide-deep": Model("feature_columns", "wide_deep", (1, 64, 1024)),
    "LSTM": Model("recurrent", "lstm", (1, 64)),
    "BERT-small": Model("transformers", "bert_small", (1, 64)),
    "BERT-layer": Model("transformers", "bert_layer", (1, 8)),
    "ResNet-50": Model("vision", "resnet50", (1, 4)),
    "MobileNetV2": Model("vision", "mobilenet_v2", (1, 8)),
}
