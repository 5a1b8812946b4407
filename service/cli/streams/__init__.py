"""Inputs and outputs of commands: lines, files, standard streams."""
