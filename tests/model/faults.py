"""Faults to put into a copy of the SQL, to see that the model finds them: (right, wrong) texts."""

POSTGRES = {
    "lost fence": ("j.queue = ack.queue AND j.attempts = ack.attempt", "j.queue = ack.queue"),
    "a claim ends a second early": (
        "j.attempts = ack.attempt AND j.claim_expires_at >= moment",
        "j.attempts = ack.attempt AND j.claim_expires_at > moment",
    ),
    "dead move without delete": (
        "DELETE FROM alkstore._job j WHERE j.id = ANY (ids) RETURNING j.*",
        "SELECT j.* FROM alkstore._job j WHERE j.id = ANY (ids)",
    ),
    "order by id": ("ORDER BY t.priority DESC, t.run_at, t.id;", "ORDER BY t.id;"),
    "attempts not counted": ("attempts = j.attempts + 1", "attempts = greatest(j.attempts, 1)"),
    "expiry ignored": (
        "AND j.ready AND j.due_at <= moment\n"
        "          AND (j.expires_at IS NULL OR j.expires_at >= moment)",
        "AND j.ready AND j.due_at <= moment",
    ),
    "heartbeat adds": (
        "claim_expires_at = moment + make_interval(secs => coalesce(heartbeat.extend_s",
        "claim_expires_at = claim_expires_at + make_interval(secs => coalesce(heartbeat.extend_s",
    ),
    "retention a second short": ("p.prune_at < moment", "p.prune_at <= moment"),
    "release costs an attempt": ("released = j.released + 1", "released = j.released"),
    "backoff from zero": ("RETURN low + floor(random()", "RETURN floor(random()"),
    "error forgotten": (
        "retry_error = coalesce(cut_error, j.retry_error)",
        "retry_error = cut_error",
    ),
    "lapsed and spent not buried": ("WHERE j.id = ANY (spent) AND", "WHERE false AND"),
    "messages kept under the outbox's own name": (
        "RETURN '__alkstore_outbox_' || outbox;",
        "RETURN outbox;",
    ),
    "messages with a stamp of their own": (
        "outbox_enqueue.max_attempts, NULL, NULL, NULL)",
        "outbox_enqueue.max_attempts, 60, NULL, NULL)",
    ),
    "messages without their max_attempts": (
        "outbox_enqueue.max_attempts, NULL, NULL, NULL)",
        "NULL, NULL, NULL, NULL)",
    ),
    "claim of messages from the queue of that name": (
        "_claim(alkstore._outbox_queue(outbox_claim.outbox)",
        "_claim(outbox_claim.outbox",
    ),
    "cancel of messages reaches into queues": ("AND j.queue = target;", ";"),
    "sweep of messages reaches into the queue of that name": (
        "_sweep_expired(alkstore._outbox_queue(outbox_sweep_expired.outbox))",
        "_sweep_expired(outbox_sweep_expired.outbox)",
    ),
    "messages open to the calls of queues": (
        "IF starts_with(name, '__alkstore_') THEN",
        "IF starts_with(name, '__alkstore_') AND what <> 'queue' THEN",
    ),
    "a boundary fires a second late": ("s.next_run_at <= moment", "s.next_run_at < moment"),
    "of missed boundaries only one fires": ("least(missed, 64) - 1)", "0)"),
    "boundaries drift": (
        "next_run_at = due.next_run_at + make_interval(secs => due.interval_s * missed)",
        "next_run_at = moment + make_interval(secs => due.interval_s)",
    ),
    "another spec of the same interval keeps its time": (
        "WHEN s.spec = excluded.spec THEN",
        "WHEN s.interval_s = excluded.interval_s THEN",
    ),
}

SQLITE = {
    "lost fence": (
        "AND queue = NEW.queue AND attempt = NEW.attempt);\n  DELETE",
        "AND queue = NEW.queue);\n  DELETE",
    ),
    "a claim ends a second early": (
        "WHERE j.claim_expires_at >= c.now;",
        "WHERE j.claim_expires_at > c.now;",
    ),
    "dead move without delete": (
        "  WHERE j.id = NEW.id;\n  DELETE FROM __alkstore_job WHERE id = NEW.id;",
        "  WHERE j.id = NEW.id;",
    ),
    "order by id": (
        "ORDER BY priority DESC, run_at, id\n  LIMIT NEW.n",
        "ORDER BY id\n  LIMIT NEW.n",
    ),
    "attempts not counted": ("attempts = attempts + 1", "attempts = max(attempts, 1)"),
    "expiry ignored": (
        "AND due_at <= NEW.now AND (expires_at IS NULL OR expires_at >= NEW.now)\n  ORDER",
        "AND due_at <= NEW.now\n  ORDER",
    ),
    "heartbeat adds": (
        "claim_expires_at = c.now + coalesce(NEW.extend_s",
        "claim_expires_at = claim_expires_at + coalesce(NEW.extend_s",
    ),
    "retention a second short": (
        "DELETE FROM __alkstore_dead_job WHERE queue = NEW.queue AND prune_at < NEW.now",
        "DELETE FROM __alkstore_dead_job WHERE queue = NEW.queue AND prune_at <= NEW.now",
    ),
    "release costs an attempt": ("released = released + 1", "released = released"),
    "backoff from zero": ("(b.cap + 1) / 2 + (random()", "(random()"),
    "error forgotten": (
        "retry_error = coalesce(substr(CAST(NEW.error AS TEXT), 1, 65536), retry_error)",
        "retry_error = substr(CAST(NEW.error AS TEXT), 1, 65536)",
    ),
    "lapsed and spent not buried": (
        "AND claim_expires_at < NEW.now AND attempts - released >= max_attempts",
        "AND claim_expires_at < NEW.now AND attempts < 0",
    ),
    "messages kept under the outbox's own name": (
        "NEW.job_id, coalesce('__alkstore_outbox_' || NEW.outbox, NEW.queue)",
        "NEW.job_id, coalesce(NEW.outbox, NEW.queue)",
    ),
    "messages with a stamp of their own": (
        "coalesce(NEW.visibility_timeout_s, 300)",
        "coalesce(NEW.visibility_timeout_s, iif(NEW.outbox IS NULL, 300, 60))",
    ),
    "messages without their max_attempts": (
        "coalesce(NEW.max_attempts, 3), coalesce(NEW.vis",
        "coalesce(iif(NEW.outbox IS NULL, NEW.max_attempts, NULL), 3), coalesce(NEW.vis",
    ),
    "claim of messages from the queue of that name": (
        "coalesce('__alkstore_outbox_' || NEW.outbox, NEW.queue), NEW.worker_id",
        "coalesce(NEW.outbox, NEW.queue), NEW.worker_id",
    ),
    "cancel of messages reaches into queues": (
        "AND queue = coalesce('__alkstore_outbox_' || NEW.outbox, NEW.queue));",
        "AND (NEW.outbox IS NOT NULL OR queue = NEW.queue));",
    ),
    "sweep of messages reaches into the queue of that name": (
        "coalesce('__alkstore_outbox_' || NEW.outbox, NEW.queue), now FROM",
        "coalesce(NEW.outbox, NEW.queue), now FROM",
    ),
    "messages open to the calls of queues": (
        "WHERE substr(NEW.name, 1, 11) = '__alkstore_';",
        "WHERE substr(NEW.name, 1, 11) = '__alkstore_' AND NEW.what <> 'queue';",
    ),
    "a boundary fires a second late": (
        "ON s.next_run_at <= c.now",
        "ON s.next_run_at < c.now",
    ),
    "of missed boundaries only one fires": ("FROM step WHERE n < 63)", "FROM step WHERE n < 0)"),
    "boundaries drift": (
        "next_run_at + ((c.now - next_run_at) / interval_s + 1) * interval_s",
        "c.now + interval_s",
    ),
    "another spec of the same interval keeps its time": (
        "CASE WHEN spec = NEW.spec THEN next_run_at",
        "CASE WHEN interval_s = NEW.interval_s THEN next_run_at",
    ),
}
