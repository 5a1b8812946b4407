"""The translation library: text in, text out; knows nothing of HTTP."""
