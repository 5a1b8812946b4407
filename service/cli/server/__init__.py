"""Commands of a server and of its operators."""
