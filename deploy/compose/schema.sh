#!/bin/sh
# Makes Temporal's two databases, or brings their schema up to date: every step may be run again. SQL_PASSWORD is the database's.
set -eu

sql() {
  temporal-sql-tool --plugin postgres12 --ep postgres -p 5432 -u temporal --db "$@"
}

for database in temporal:temporal temporal_visibility:visibility; do
  name=${database%%:*}
  sql "$name" create
  sql "$name" setup-schema -v 0.0
  sql "$name" update-schema -d "/etc/temporal/schema/postgresql/v12/${database##*:}/versioned"
done
