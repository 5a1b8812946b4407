"""Replicas on one machine: measured from 1 to N, and simulated beyond what is there."""
