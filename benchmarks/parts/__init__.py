"""The parts of the benchmark; each can be run alone by its name."""
