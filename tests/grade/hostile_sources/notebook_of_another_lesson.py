# {"full": "none", "status": "other lesson", "reason": "lesson 00", "metadata": {"llmcourse": {"lesson": "00"}}}
# %%
def generate_loop(next_logits, ids, max_new, stop_ids):
    return []
