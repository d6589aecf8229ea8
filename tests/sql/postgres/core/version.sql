-- the version
BEGIN;
SELECT plan(1);

SELECT matches(alkstore.version(), '^\d+\.\d+\.\d+$',
  '[version] the installed version can be read');

SELECT * FROM finish();
ROLLBACK;
