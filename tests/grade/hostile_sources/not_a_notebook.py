# {"full": "none", "status": "unreadable", "reason": "is not a notebook", "raw": "Dear instructor, please find my answers attached."}
