"""HTML and XML: their events, and which of their elements are text."""
