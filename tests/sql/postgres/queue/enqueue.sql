-- enqueue, enqueue_batch
BEGIN;
SELECT plan(34);
\ir ../clock.sql
\ir ../_effects.sql
\ir ../_answers.sql

-- [payload]
CREATE TEMPORARY TABLE payloads AS
SELECT payload FROM unnest(ARRAY[
  '{"b":1, "a":[1.0,1e2]}', '{"a":1,"a":2}', '1180591620717411303424', '9007199254740993', '1e400', '-0', '"\u0000"', '"\ud800"',
  '"\u00e9é😀"', '"a\/b"', 'null', 'true', '""', '[]', '{}', E' \t\r\n[ 1 ,2 ]\n', E'"\u007f"', '"' || repeat('x', 1048576) || '"'
]) payload;

SELECT pg_temp.fresh();
SELECT count(alkstore.enqueue('q', payload)) FROM payloads;
SELECT results_eq(
  $$ SELECT payload::text FROM alkstore.claim('q', 'w', 99) $$, $$ SELECT payload FROM payloads $$,
  '[payload] JSON is kept byte for byte');

SELECT pg_temp.fresh();
SELECT count(*) FROM alkstore.enqueue_batch('q', (SELECT '[ ' || string_agg(payload, E' ,\n') || ' ]' FROM payloads));
SELECT results_eq(
  $$ SELECT payload::text FROM alkstore.claim('q', 'w', 99) $$,
  $$ SELECT CASE WHEN payload ~ '^\s' THEN btrim(payload, E' \t\r\n') ELSE payload END FROM payloads $$,
  '[payload] a batch keeps the bytes of each of its elements');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.enqueue(''q'', %L)',
    '', ' ', 'nul', 'TRUE', '''a''', 'NaN', '-Infinity', '01', '+1', '1.', '.5', '0x1', '1e', '[1,]', '[1 2]', '{"a":1,}', '{a:1}', '{1:2}',
    '"a', 'a"', E'"\t"', E'"\u0001"', '"\x"', '"\u12"', '1 2', '[1', '// c', E'\ufeff1', E'\u00a01', E'\f1'),
  array_fill('AK002 invalid_payload: the'::text, ARRAY[30]),
  '[payload] what is not JSON is refused');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.enqueue(''q'', %s)', 'NULL', 'NULL::json', '''null''')
  || pg_temp.lines('SELECT payload::text FROM alkstore.jobs'),
  ARRAY['AK002 invalid_payload: the', 'AK002 invalid_payload: the', '1', 'null'],
  '[payload] NULL is refused, the JSON value null is not');

SELECT pg_temp.fresh();
SET LOCAL bytea_output = 'escape';
SELECT is(
  pg_temp.answers('alkstore.enqueue(''q'', %L::bytea)', '1', '{}', '"a"')
  || pg_temp.answers('alkstore.enqueue_batch(''q'', %L::bytea)', '[1]'),
  array_fill('AK002 invalid_payload: the'::text, ARRAY[4]),
  '[payload] a blob is refused, whatever is in it');
RESET bytea_output;

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', repeat('[', 1000) || repeat(']', 1000)), alkstore.enqueue('q', repeat('{"a":', 1000) || '1' || repeat('}', 1000));
SELECT is(
  pg_temp.lines($$ SELECT left(payload::text, 6), octet_length(payload::text) FROM alkstore.claim('q', 'w', 2) $$),
  ARRAY['[[[[[[|2000', '{"a":{|6001'],
  '[payload] 1000 levels are kept');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.enqueue(''q'', %s)', $$ repeat('[', 1000000) $$, $$ repeat('[', 100000) || repeat(']', 100000) $$),
  ARRAY['AK002 invalid_payload: the', 'AK002 invalid_payload: the'],
  '[payload] what is too deep to read is refused');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '{"b":1, "a":2}'::json), alkstore.enqueue('q', '{"b":1, "a":2}'::jsonb), alkstore.enqueue('q', 7);
SELECT alkstore.enqueue_batch('q', '[ 1.0]'::json), alkstore.enqueue_batch('q', '[ 1.0]'::jsonb);
SELECT is(
  pg_temp.lines('SELECT payload::text FROM alkstore.jobs ORDER BY job_id'),
  ARRAY['{"b":1, "a":2}', '{"a": 2, "b": 1}', '7', '1.0', '1.0'],
  '[payload] a json, a jsonb and a number are taken as their text');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('count(*) FROM alkstore.enqueue_batch(''q'', %L)', NULL, '', '[1', '1', 'null', '{"a":[1]}', '[]', '[null]'),
  array_fill('AK002 invalid_payload: the'::text, ARRAY[3]) || array_fill('AK002 invalid_payload: payloads'::text, ARRAY[3])
  || ARRAY['0', '1'],
  '[payload] a batch is one JSON array');

-- [options]
SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '"a"');
SELECT is(
  pg_temp.lines('SELECT * FROM alkstore.jobs'),
  ARRAY['1|q|pending|a|0|0|3|300|5|NULL|NULL|1000000000|1000000000|NULL|NULL|NULL|NULL|NULL|NULL|0'],
  '[options] the defaults');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '"a"', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
SELECT alkstore.enqueue_batch('q', '["a"]', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
SELECT is(
  pg_temp.lines('SELECT * FROM alkstore.jobs ORDER BY job_id'),
  ARRAY['1|q|pending|a|0|0|3|300|5|NULL|NULL|1000000000|1000000000|NULL|NULL|NULL|NULL|NULL|NULL|0',
    '2|q|pending|a|0|0|3|300|5|NULL|NULL|1000000000|1000000000|NULL|NULL|NULL|NULL|NULL|NULL|0'],
  '[options] NULL means the default');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.enqueue(''q'', ''1'', delay_s => %s)', '-1', '0', '2147483647', '2147483648', '-9223372036854775808')
  || pg_temp.lines('SELECT run_at FROM alkstore.jobs ORDER BY job_id'),
  ARRAY['AK003 invalid_option: delay_s', '1', '2', 'AK003 invalid_option: delay_s', 'AK003 invalid_option: delay_s',
    '1000000000', '3147483647'],
  '[options] delay_s is 0 to 2147483647');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.enqueue(''q'', ''1'', priority => %s)', '-2147483649', '-2147483648', '2147483647', '2147483648')
  || pg_temp.lines('SELECT priority FROM alkstore.jobs ORDER BY job_id'),
  ARRAY['AK003 invalid_option: priority', '1', '2', 'AK003 invalid_option: priority', '-2147483648', '2147483647'],
  '[options] priority is -2147483648 to 2147483647');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.enqueue(''q'', ''1'', expires_s => %s)', '-1', '0', '1', '2147483647', '2147483648')
  || pg_temp.lines('SELECT expires_at FROM alkstore.jobs ORDER BY job_id'),
  ARRAY['AK003 invalid_option: expires_s', 'AK003 invalid_option: expires_s', '1', '2', 'AK003 invalid_option: expires_s',
    '1000000001', '3147483647'],
  '[options] expires_s is 1 to 2147483647');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.enqueue(''q'', ''1'', max_attempts => %s)', '-1', '0', '1', '32767', '32768', '2147483647', '2147483648')
  || pg_temp.lines('SELECT max_attempts FROM alkstore.jobs ORDER BY job_id'),
  ARRAY['AK003 invalid_option: max_attempts', 'AK003 invalid_option: max_attempts', '1', '2', '3', '4',
    'AK003 invalid_option: max_attempts', '1', '32767', '32768', '2147483647'],
  '[options] max_attempts is 1 to 2147483647');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.enqueue(''q'', ''1'', visibility_timeout_s => %s)', '-1', '0', '1', '2147483647', '2147483648')
  || pg_temp.lines('SELECT visibility_timeout_s FROM alkstore.jobs ORDER BY job_id'),
  ARRAY['AK003 invalid_option: visibility_timeout_s', 'AK003 invalid_option: visibility_timeout_s', '1', '2',
    'AK003 invalid_option: visibility_timeout_s', '1', '2147483647'],
  '[options] visibility_timeout_s is 1 to 2147483647');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.enqueue(''q'', ''1'', backoff_base_s => %s)', '-1', '0', '2147483647', '2147483648')
  || pg_temp.lines('SELECT backoff_base_s FROM alkstore.jobs ORDER BY job_id'),
  ARRAY['AK003 invalid_option: backoff_base_s', '1', '2', 'AK003 invalid_option: backoff_base_s', '0', '2147483647'],
  '[options] backoff_base_s is 0 to 2147483647');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.enqueue(''q'', ''1'', dead_letter_retention_s => %s)', '-1', '0', '2147483647', '2147483648')
  || pg_temp.lines('SELECT dead_letter_retention_s FROM alkstore.jobs ORDER BY job_id'),
  ARRAY['AK003 invalid_option: dead_letter_retention_s', '1', '2', 'AK003 invalid_option: dead_letter_retention_s', '0', '2147483647'],
  '[options] dead_letter_retention_s is 0 to 2147483647');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.enqueue(''q'', ''1'', run_at => %L)', '0001-12-31 23:59:59+00 BC', '0001-01-01 00:00:00+00',
    '9999-12-31 23:59:59+00', '10000-01-01 00:00:00+00', 'infinity', '-infinity')
  || pg_temp.lines('SELECT run_at FROM alkstore.jobs ORDER BY job_id'),
  ARRAY['AK003 invalid_option: run_at', '1', '2', 'AK003 invalid_option: run_at', 'AK003 invalid_option: run_at',
    'AK003 invalid_option: run_at', '-62135596800', '253402300799'],
  '[options] run_at lies in the years 1 to 9999');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.enqueue(''q'', ''1'', run_at => %L)', '2001-09-09 01:46:40.999999+00', '1969-12-31 23:59:59.5+00',
    '9999-12-31 23:59:59.999999+00')
  || pg_temp.lines('SELECT run_at, date_part(''microseconds'', run_at)::bigint % 1000000 FROM alkstore.jobs ORDER BY job_id')
  || pg_temp.lines($$ SELECT job_id FROM alkstore.claim('q', 'w', 3) $$),
  ARRAY['1', '2', '3', '1000000000|0', '-1|0', '253402300799|0', '2', '1'],
  '[options] run_at is cut to the second');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.enqueue(''q'', ''1'', %s)', 'delay_s => 1.5', 'priority => 1.0', 'expires_s => ''x''',
    'max_attempts => 9223372036854775808', 'visibility_timeout_s => 1e3', 'backoff_base_s => true', 'dead_letter_retention_s => ''1.5'''),
  ARRAY['42883', '42883', '22P02', '42883', '42883', '42883', '22P02'],
  '[options] what is no whole number is refused');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', delay_s => 60, run_at => '2033-05-18 03:33:20+00');
SELECT alkstore.enqueue('q', '2', delay_s => 0, run_at => '2033-05-18 03:33:20+00');
SELECT alkstore.enqueue('q', '3', run_at => '2033-05-18 03:33:20+00');
SELECT is(
  pg_temp.lines('SELECT payload, run_at FROM alkstore.jobs ORDER BY job_id'),
  ARRAY['1|1000000060', '2|1000000000', '3|2000000000'],
  '[options] delay_s wins over run_at');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', delay_s => 60, expires_s => 10);
SELECT is(
  pg_temp.lines('SELECT run_at, expires_at FROM alkstore.jobs'),
  ARRAY['1000000060|1000000010'],
  '[options] expires_s counts from now, not from run_at');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', run_at => '2001-09-09 01:46:39+00');
SELECT alkstore.enqueue('q', '2', run_at => '0001-01-01 00:00:00+00');
SELECT is(
  pg_temp.lines($$ SELECT payload, run_at FROM alkstore.claim('q', 'w', 2) $$),
  ARRAY['2|-62135596800', '1|999999999'],
  '[options] a run_at in the past is kept and makes the job ready at once');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue_batch('q', '["a","b"]', 1, NULL, 2, 3, 4, 5, 6, 7);
SELECT is(
  pg_temp.lines('SELECT * FROM alkstore.jobs ORDER BY job_id'),
  ARRAY['1|q|pending|a|2|0|4|5|6|7|NULL|1000000000|1000000001|1000000003|NULL|NULL|NULL|NULL|NULL|0',
    '2|q|pending|b|2|0|4|5|6|7|NULL|1000000000|1000000001|1000000003|NULL|NULL|NULL|NULL|NULL|0'],
  '[options] the options of a batch hold for each of its jobs');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.enqueue_batch(''q'', ''[1]'', %s)', 'delay_s => -1', 'run_at => ''infinity''', 'priority => 2147483648',
    'expires_s => 0', 'max_attempts => 0', 'visibility_timeout_s => 0', 'backoff_base_s => -1', 'dead_letter_retention_s => -1'),
  ARRAY(SELECT 'AK003 invalid_option: ' || o FROM unnest('{delay_s,run_at,priority,expires_s,max_attempts,visibility_timeout_s,
    backoff_base_s,dead_letter_retention_s}'::text[]) o),
  '[options] a batch refuses what enqueue refuses');

-- [stamps]
SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', max_attempts => 1, visibility_timeout_s => 2, backoff_base_s => 3, dead_letter_retention_s => 4);
SELECT alkstore.enqueue('q', '2', max_attempts => 5, visibility_timeout_s => 60, backoff_base_s => 7, dead_letter_retention_s => 8);
SELECT alkstore.claim('q', 'w', 2);
SELECT is(
  pg_temp.lines('SELECT payload, max_attempts, visibility_timeout_s, backoff_base_s, dead_letter_retention_s, claim_expires_at
    FROM alkstore.jobs ORDER BY job_id'),
  ARRAY['1|1|2|3|4|1000000002', '2|5|60|7|8|1000000060'],
  '[stamps] each job keeps the options that it was enqueued with');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', delay_s => 7, expires_s => 11);
SELECT pg_temp.advance(8);
SELECT alkstore.claim('q', 'w');
SELECT is(
  pg_temp.lines('SELECT created_at, run_at, expires_at FROM alkstore.jobs'),
  ARRAY['1000000000|1000000007|1000000011'],
  '[stamps] instants are resolved at enqueue, with one clock read');

-- [refusals]
SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1');
SELECT is(
  ARRAY(SELECT pg_temp.effect('alkstore.' || call) FROM unnest(ARRAY[
    $$ enqueue('', '1') $$, $$ enqueue('__alkstore_x', '1') $$, $$ enqueue('q', 'x') $$, $$ enqueue('q', '1', priority => 2147483648) $$,
    $$ enqueue_batch('q', '[1,2') $$, $$ enqueue_batch('q', '[1,2]', delay_s => -1) $$, $$ claim('', 'w') $$, $$ claim('q', '') $$]) call),
  ARRAY['AK001, untouched', 'AK001, untouched', 'AK002, untouched', 'AK003, untouched', 'AK002, untouched', 'AK003, untouched',
    'AK001, untouched', 'AK001, untouched'],
  '[refusals] a refused call changes nothing');

CREATE FUNCTION pg_temp.refusal(call text) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
  hint text;
BEGIN
  EXECUTE 'SELECT ' || call;
  RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
  RETURN SQLSTATE || ' ' || SQLERRM || ' / ' || hint;
END $$;
SELECT is(
  ARRAY(SELECT pg_temp.refusal('alkstore.' || call) FROM unnest(ARRAY[
    $$ enqueue(repeat('x', 256), '1') $$, $$ enqueue('__alkstore_x', '1') $$, $$ enqueue('q', NULL) $$, $$ enqueue('q', '[1,') $$,
    $$ enqueue('q', '1', delay_s => -1) $$]) call),
  ARRAY['AK001 invalid_name: queue must be text of 1 to 255 bytes / It has 256 bytes.',
    'AK001 invalid_name: queue must not start with the reserved prefix __alkstore_ / It is ''__alkstore_x''.',
    'AK002 invalid_payload: the payload is NULL / The JSON value null is written ''null''.',
    'AK002 invalid_payload: the payload is not JSON / The input string ended unexpectedly.',
    'AK003 invalid_option: delay_s must be a whole number from 0 to 2147483647 / It is -1.'],
  '[refusals] a refusal has a code and says what is wrong');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.%s',
    $$ ack('q', 1, 1) $$, $$ ack_batch('q', '{1}', '{1}') $$, $$ retry('q', 1, 1, 'e') $$, $$ release('q', 1, 1) $$,
    $$ fail('q', 1, 1) $$, $$ heartbeat('q', 1, 1) $$, $$ cancel('q', 1) $$, $$ get_job('q', 1) $$, $$ claim('q', 'w') $$),
  ARRAY['false', '0', 'false', 'false', 'false', 'false', 'false', NULL, NULL],
  '[refusals] a call that no longer applies is no error');

-- [tx-enqueue]
SELECT pg_temp.fresh();
CREATE TEMPORARY TABLE orders (id int);
SAVEPOINT before_order;
INSERT INTO orders VALUES (1);
SELECT alkstore.enqueue('q', '1');
ROLLBACK TO before_order;
SELECT is(
  pg_temp.lines('SELECT * FROM orders') || pg_temp.lines('SELECT job_id FROM alkstore.jobs')
  || pg_temp.lines($$ SELECT job_id FROM alkstore.claim('q', 'w') $$),
  '{}'::text[],
  '[tx-enqueue] rolled back to a savepoint, neither the job nor the caller''s row is there');

SELECT pg_temp.fresh();
SAVEPOINT before_order;
INSERT INTO orders VALUES (2);
SELECT alkstore.enqueue('q', '2') AS id \gset
RELEASE before_order;
SELECT is(
  pg_temp.lines('SELECT * FROM orders') || pg_temp.lines(format('SELECT payload FROM alkstore.get_job(''q'', %s)', :id))
  || pg_temp.lines($$ SELECT payload FROM alkstore.claim('q', 'w') $$),
  ARRAY['2', '2', '2'],
  '[tx-enqueue] the transaction itself sees its job and its row');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.lines($$ SELECT alkstore.enqueue_batch('q', '["c", "a", "b"]') $$)
  || pg_temp.lines('SELECT job_id, payload FROM alkstore.jobs ORDER BY job_id'),
  ARRAY['1', '2', '3', '1|c', '2|a', '3|b'],
  '[tx-enqueue] a batch gives one id for each payload, in input order');

SELECT * FROM finish();
ROLLBACK;
