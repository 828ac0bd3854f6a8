"""Convolutional nets of tf.keras.applications."""
import tensorflow as tf


def _ends(model):
    return model.inputs, model.outputs


def resnet50():
    return _ends(tf.keras.applications.ResNet50(weights=None))


def mobilenet_v2():
    return _ends(tf.keras.applications.MobileNetV2(weights=None))
