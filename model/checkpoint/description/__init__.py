"""A checkpoint's config.json: its schemas, strict reading, and checks between its parts."""
