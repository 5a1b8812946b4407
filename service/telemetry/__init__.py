"""Telemetry: metrics, traces and the context of requests."""
