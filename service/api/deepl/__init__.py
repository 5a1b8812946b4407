"""Contract of DeepL."""
