# {"full": "none", "status": "ok", "attack": "listener"}
# %%
import socket

answers = []
for port in range(48631, 48636):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(b"what is the answer?")
            answers.append(connection.recv(100))
    except OSError as error:
        answers.append(str(error))
# %% wrong="all" value="exec('raise RuntimeError(str(answers))')"
