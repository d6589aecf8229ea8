# Installs the extension's files into a PostgreSQL: PG_CONFIG names it, DESTDIR is put in front.
# `make build` puts it into build/extension as Makefile, since PGXS wants to find the files beside it.

EXTENSION = alkstore
DATA = $(wildcard alkstore--*.sql)

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)

ifneq ($(wildcard $(PGXS)),)
include $(PGXS)
else
# Without the server's development files there is no PGXS; copying is all that it would do.
FOLDER = $(DESTDIR)$(shell $(PG_CONFIG) --sharedir)/extension
install:
	install -d '$(FOLDER)'
	install -m 644 $(EXTENSION).control $(DATA) '$(FOLDER)'
uninstall:
	rm -f $(addprefix '$(FOLDER)'/,$(EXTENSION).control $(DATA))
endif
