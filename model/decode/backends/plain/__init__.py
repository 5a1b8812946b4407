"""The backend of the plain network: no caches, every variant, an oracle of the others."""
