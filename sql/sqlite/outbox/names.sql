-- An outbox is a queue with a reserved name, '__alkstore_outbox_' || outbox, reached only through column outbox of
-- alkstore_enqueue, alkstore_claim, alkstore_cancel and alkstore_sweep_expired:
--
--   INSERT INTO alkstore_enqueue(outbox, payload) VALUES ('mail', '{"to": 7}') RETURNING job_id;
--   INSERT INTO alkstore_claim(outbox, worker_id) VALUES ('mail', 'w1') RETURNING (SELECT jobs FROM alkstore_claimed_json);
--
-- Enqueue inside the transaction of the business change: the message goes out if and only if that commits. Settle a claim by
-- alkstore_ack, retry, release, fail and heartbeat with the queue that the claim returned. Delivery is at least once: job_id is the
-- receiver's key for dropping repeats. Messages have the default visibility timeout, backoff and retention.

-- One of queue and outbox is the target of a call.
CREATE VIEW IF NOT EXISTS __alkstore_check_target(queue, outbox) AS SELECT NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_check_target_queue INSTEAD OF INSERT ON __alkstore_check_target
WHEN NEW.outbox IS NULL
BEGIN
  INSERT INTO __alkstore_check_public_name(what, name) VALUES ('queue', NEW.queue);
END;

CREATE TRIGGER IF NOT EXISTS __alkstore_check_target_outbox INSTEAD OF INSERT ON __alkstore_check_target
WHEN NEW.outbox IS NOT NULL
BEGIN
  SELECT RAISE(ABORT, 'AK003 invalid_option: give queue or outbox, not both') WHERE NEW.queue IS NOT NULL;
  INSERT INTO __alkstore_check_public_name(what, name) VALUES ('outbox', NEW.outbox);
  SELECT RAISE(ABORT, 'AK001 invalid_name: outbox must be text of 1 to 237 bytes without NUL')
  WHERE length(CAST(NEW.outbox AS BLOB)) > 237;
END;
