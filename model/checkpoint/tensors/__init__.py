"""Tensors of a checkpoint: names, shapes, int8 rows, and the file that holds them."""
