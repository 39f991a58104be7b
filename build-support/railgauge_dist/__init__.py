"""Makes releases: fetches the tools, builds for old C libraries and other processors, packs, checks what it packed."""
