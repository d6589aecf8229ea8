-- wake_channel. What is delivered, and when, needs two sessions: see tests/python/test_wake.py
BEGIN;
SELECT plan(7);

SELECT is(alkstore.wake_channel(queue => 'emails'), 'emails', '[wake] the channel is the name of the queue');
SELECT is(alkstore.wake_channel('A/b "c"; --%'), 'A/b "c"; --%', '[wake] whatever characters the name has');
SELECT is(
  ARRAY[alkstore.wake_channel(repeat('x', 63)), alkstore.wake_channel(repeat('é', 31) || 'e')],
  ARRAY[repeat('x', 63), repeat('é', 31) || 'e'], '[wake] up to 63 bytes');
SELECT is(
  ARRAY[alkstore.wake_channel(repeat('x', 64)), alkstore.wake_channel(repeat('é', 32))],
  -- The first 48 digits of their SHA-256.
  ARRAY['alkstore_7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d', 'alkstore_2e5152e606afb24d5817608407516dfec44866c8ed63edbb'],
  '[wake] a longer name has a prefix and a hash');
SELECT is(
  (SELECT count(DISTINCT alkstore.wake_channel(repeat('x', 63) || i)) FROM generate_series(1, 100) i), 100::bigint,
  '[wake] names that share their first 63 bytes have channels of their own');
SELECT is(
  (SELECT max(octet_length(alkstore.wake_channel(repeat('ü', n)))) FROM generate_series(1, 127) n), 62,
  '[wake] no channel is longer than LISTEN and NOTIFY take');
SELECT is(
  ARRAY[alkstore.wake_channel(NULL), alkstore.wake_channel(''), alkstore.wake_channel('__alkstore_q'),
    left(alkstore.wake_channel(repeat('x', 256)), 9)],
  ARRAY[NULL, '', '__alkstore_q', 'alkstore_'], '[wake] any name is taken, also one that cannot exist');

SELECT * FROM finish();
ROLLBACK;
