"""Questions to the operating system: paths, memory, processors, devices."""
