"""The backend for GPUs: a grid of slots and beams, steps that are recorded once and replayed."""
