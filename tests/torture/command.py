"""A handler as a program, for `alkstore work --exec`: it writes to the journal of its worker.

The standard library alone, as little of it as will do: it is started for each job.
"""

import json
import os
import random
import signal
import sys
import time


def write(**entry: object) -> None:
    os.write(journal, (json.dumps(entry | {"t": time.time()}) + "\n").encode())


journal = os.open(os.environ["TORTURE_JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
number = f"{os.getpid()} {time.time_ns()}"  # of this call
id, attempt = int(os.environ["ALKSTORE_JOB_ID"]), int(os.environ["ALKSTORE_ATTEMPT"])
row = {"job_id": id, "attempt": attempt, "payload": sys.stdin.read()}
row["queue"] = os.environ["ALKSTORE_QUEUE"]
arguments = {"worker": os.environ["TORTURE_WORKER"], "row": row}
write(call=number, name="run", arguments=arguments, transaction=None)
endings = {"succeed": 70, "explain": 8, "exit": 8, "be_killed": 4, "block": 2}
[ending] = random.choices(list(endings), list(endings.values()))
time.sleep(random.choice((0, 0, 0.01, 0.2)))
if ending == "explain":
    text = f"{id}-{attempt} will not do"
    write(done=number, result=["retry", f"exit status 1: {text}", None])
    sys.exit(text)
if ending == "exit":
    write(done=number, result=["retry", "exit status 3", None])
    sys.exit(3)
if ending == "be_killed":
    write(done=number, result=["retry", "killed by SIGKILL", None])
    os.kill(os.getpid(), signal.SIGKILL)
if ending == "block":
    time.sleep(3)
write(done=number, result=["ack"])
