"""The web page: static files and their routes."""
