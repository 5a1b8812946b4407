"""The backend in plain PyTorch, on any device."""
