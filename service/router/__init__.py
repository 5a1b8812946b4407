"""Router: one address for groups of servers with different languages; no network runs here."""
