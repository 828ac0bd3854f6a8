"""The only package that imports tensorflow: native passes, the graph rewrite, the npu_bridge face."""
