"""Formats that are a zip archive of XML or of pages."""
