"""The grader: a trusted parent reads, compares and reports; untrusted workers run the submissions' code.

What comes in      submissions (which files, and whose), roster, reader (a notebook's answers as data)
What is right      reference (the solutions' results for a seed), replay (what a worker gets instead of hidden code)
Who runs it        run (all of them, resumable), jobs (several at once), lab (one lab's workers and comparisons),
                   supervise (one submission: deadlines, caps, what is done after a hang)
How it is shut in  sandbox (processes), filesystem and visible_files (what they see), limits, syscalls, isolation (what this
                   machine allows)
Untrusted          worker (runs answers and probes, writes JSON lines); fork_server forks it warm, workers starts either
What comes out     results, report, gradebook, record, exports
"""
