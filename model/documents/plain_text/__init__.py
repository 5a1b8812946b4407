"""Formats whose texts stand between line ends, quotes and separators."""
