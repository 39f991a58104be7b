"""What the side-by-side benchmarks share: agents led by hand, the peers' programs, places to run in, series of figures."""
