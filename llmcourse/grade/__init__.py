"""The grader: a trusted parent reads, compares and reports; untrusted workers run the submissions' code.

submissions   which files are graded, and as whose
reader        a notebook's answers as data, in a process of its own
reference     what the solutions give for a seed, in a process of its own
server        forks workers, warm; sandbox, limits and syscalls shut them in
worker        the untrusted half: runs answers and probes, writes JSON lines
attend        the parent's side of a worker: deadlines, caps, what is done after a hang
grading       one submission; run: all of them, resumable; report, gradebook, roster, exports: what comes out
"""
