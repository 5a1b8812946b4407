"""Translation and evaluation of files, without a server."""
