"""Translation service: HTTP in the front process, the network in an engine process."""
