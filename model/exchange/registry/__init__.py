"""Models by name: registries of other projects, mirrors of them, archives and folders."""
