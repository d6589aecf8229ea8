-- [version] the installed version can be read
SELECT count(*) FROM alkstore_version WHERE version GLOB '[0-9]*.[0-9]*.[0-9]*';
--> 1
