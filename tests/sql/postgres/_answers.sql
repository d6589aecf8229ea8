-- A helper of the tests: \ir this file after BEGIN.

-- What a call answers for each of these arguments, put in for its %s or %L: a value, or the code and what is wrong,
-- as 'AK003 invalid_option: delay_s'.
CREATE FUNCTION pg_temp.answers(call text, VARIADIC arguments text[]) RETURNS text[]
LANGUAGE plpgsql
AS $$
DECLARE
  argument text;
  answer text;
  answers text[] := '{}';
BEGIN
  FOREACH argument IN ARRAY arguments LOOP
    BEGIN
      EXECUTE 'SELECT ' || format(call, argument) INTO answer;
    EXCEPTION WHEN OTHERS THEN
      answer := concat_ws(' ', SQLSTATE, substring(SQLERRM FROM '^\w+: \w+'));
    END;
    answers := answers || answer;
  END LOOP;
  RETURN answers;
END $$;
