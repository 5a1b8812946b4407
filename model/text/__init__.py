"""From text to segments and token ids, and from token ids to text; no torch."""
