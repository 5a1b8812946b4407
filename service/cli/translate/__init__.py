"""Commands that translate: lines, documents, tables of any size."""
