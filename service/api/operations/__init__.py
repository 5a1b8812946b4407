"""Probes, metrics, administration, documents of the API."""
