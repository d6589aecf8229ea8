-- Names: text of 1 to 255 bytes. NUL cannot occur in PostgreSQL text.
CREATE FUNCTION alkstore._check_name(what text, name text) RETURNS void
LANGUAGE plpgsql STABLE
AS $$
BEGIN
  IF name IS NULL OR name = '' OR octet_length(name) > 255 THEN
    RAISE EXCEPTION 'invalid_name: % must be text of 1 to 255 bytes', what
      USING ERRCODE = 'AK001',
            HINT = CASE WHEN name IS NULL THEN 'It is NULL.' ELSE format('It has %s bytes.', octet_length(name)) END;
  END IF;
END $$;

-- Names that a user chooses for a shared thing; the prefix __alkstore_ is the engine's own.
CREATE FUNCTION alkstore._check_public_name(what text, name text) RETURNS void
LANGUAGE plpgsql STABLE
AS $$
BEGIN
  PERFORM alkstore._check_name(what, name);
  IF starts_with(name, '__alkstore_') THEN
    RAISE EXCEPTION 'invalid_name: % must not start with the reserved prefix __alkstore_', what
      USING ERRCODE = 'AK001', HINT = format('It is %s.', quote_literal(name));
  END IF;
END $$;
