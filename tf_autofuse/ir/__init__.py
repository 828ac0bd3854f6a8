"""The forms of a fused region: loop IR, AscGraph (HintGraph, ImplGraph) and FusedGraph.

Imports only symbolic/. Values here are immutable; a stage makes a new one.
"""
