"""Translation of documents as jobs."""
