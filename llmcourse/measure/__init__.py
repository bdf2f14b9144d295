"""Clocks and ceilings: what this machine can do, and how near the engine comes."""
