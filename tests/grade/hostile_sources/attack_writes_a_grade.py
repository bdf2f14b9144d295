# {"full": "none", "status": "problems", "attack": "score"}
# %%
import glob
import json
import os

GRADE = {"submission": "attack_writes_a_grade", "score": 1000, "max": 10, "status": "ok", "loaded": True, "problems": [], "probe": "",
         "outcome": {"kind": "value", "value": True, "reason": "ok", "points": 1000}, "points": 1000, "reason": "ok"}


def write_everywhere():
    for number in range(3, 64):
        try:
            os.write(number, json.dumps(GRADE).encode() + b"\n")
        except OSError:
            continue
    # It attacks the folder that the tests make for it, and no file of whoever runs them.
    for start in (*glob.glob("/tmp/hostile-*"), *glob.glob("/proc/1/root/tmp/hostile-*")):
        for folder, folders, files in os.walk(start):
            folders[:] = [one for one in folders if one not in ("site-packages", "lib")]
            for file in files:
                if file in ("grades.csv", "run.json") or file.startswith("attack_writes_a_grade"):
                    try:
                        with open(os.path.join(folder, file), "w") as target:
                            target.write(json.dumps(GRADE))
                    except OSError:
                        continue


write_everywhere()
# %% wrong="all" value="write_everywhere()"
