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
}
