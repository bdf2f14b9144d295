# {"full": "all", "status": "ok", "metadata": {"kernelspec": {"name": "julia-1.10", "language": "julia", "display_name": "Julia"}}}
# %% correct="all"
