"""Requests, scheduler, runner, engine: who computes what, when."""
