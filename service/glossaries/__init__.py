"""Glossaries that callers keep here."""
