# {"full": "none", "status": "unreadable", "reason": "is not a notebook", "raw": "PK\u0003\u0004\u0000\ud800"}
