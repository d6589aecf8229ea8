-- PostgreSQL lets everybody execute a new function; here nobody may until granted.
REVOKE ALL ON SCHEMA alkstore FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA alkstore FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA alkstore FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA alkstore FROM PUBLIC;
