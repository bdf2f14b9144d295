# {"full": "none", "status": "problems", "reason": "the notebook has no code"}
