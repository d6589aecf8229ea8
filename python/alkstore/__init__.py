"""alkstore: a durable job queue whose semantics live in SQL, on PostgreSQL and SQLite.

A job from its beginning to its end:

    import alkstore

    with alkstore.open("app.db") as store:
        emails = store.queue("emails")
        emails.enqueue({"to": 7})
        if job := emails.claim_one("worker-1"):
            print(job.payload)
            job.ack()
"""

from ._input import RawJson
from ._outcomes import Fail, Retry
from ._target import install, open
from .errors import (
    AlkstoreError,
    Busy,
    InvalidName,
    InvalidOption,
    InvalidPayload,
    InvalidSpec,
    LeadershipLost,
    LockHeld,
    LockLost,
    NotInstalled,
    StoreClosed,
    Unavailable,
    VersionMismatch,
)
from .locks import Lock
from .outbox import Outbox
from .queue import Queue
from .stop import StopToken
from .store import Store
from .types import Fired, Job, JobHandle, JobRecord, Swept, Transaction
from .worker import Worker

__version__ = "0.1.0"

__all__ = [
    "AlkstoreError",
    "Busy",
    "Fail",
    "Fired",
    "InvalidName",
    "InvalidOption",
    "InvalidPayload",
    "InvalidSpec",
    "Job",
    "JobHandle",
    "JobRecord",
    "LeadershipLost",
    "Lock",
    "LockHeld",
    "LockLost",
    "NotInstalled",
    "Outbox",
    "Queue",
    "RawJson",
    "Retry",
    "StopToken",
    "Store",
    "StoreClosed",
    "Swept",
    "Transaction",
    "Unavailable",
    "VersionMismatch",
    "Worker",
    "__version__",
    "install",
    "open",
]
