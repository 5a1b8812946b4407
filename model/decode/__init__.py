"""Search: sentences are admitted, stepped and released as slots of beam rows."""
