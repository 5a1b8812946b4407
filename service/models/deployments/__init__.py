"""Deployments: what is loaded together, replaced together, or loaded on demand."""
