"""Tests of the host twin and of the device helpers."""
