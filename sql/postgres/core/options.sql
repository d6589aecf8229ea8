-- Whole-number options: 32 bits in value although bigint in signatures, so that the refusal is ours and names the option.
CREATE FUNCTION alkstore._check_option(name text, value bigint, minimum bigint) RETURNS void
LANGUAGE plpgsql STABLE
AS $$
BEGIN
  IF value NOT BETWEEN minimum AND 2147483647 THEN
    RAISE EXCEPTION 'invalid_option: % must be a whole number from % to 2147483647', name, minimum
      USING ERRCODE = 'AK003', HINT = format('It is %s.', value);
  END IF;
END $$;
