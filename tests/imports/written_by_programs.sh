#!/usr/bin/env bash
# Writes the outputs in outputs/ that come from the programs themselves: pgbench against the server that libpq's
# variables (PGHOST, PGPORT, PGUSER, PGDATABASE) name, sysbench and hyperfine on this machine.
set -euo pipefail
cd "$(dirname "$0")/outputs"
export LC_ALL=C
pgbench --initialize --quiet --scale 1 2>/dev/null
pgbench --no-vacuum --client 2 --time 2 >pgbench.txt 2>&1
pgbench --no-vacuum --client 2 --time 6 --progress 1 >pgbench_progress.txt 2>&1
folder=$(mktemp -d)
pgbench --no-vacuum --client 2 --transactions 200 --rate 400 --log --log-prefix "$folder/log" >/dev/null 2>&1
mv "$folder"/log.* pgbench.log
pgbench --no-vacuum --client 2 --time 5 --log --aggregate-interval 1 --log-prefix "$folder/log" >/dev/null 2>&1
mv "$folder"/log.* pgbench_aggregate.log
sysbench cpu --time=4 --report-interval=1 run >sysbench_cpu.txt
oltp=(sysbench oltp_read_write --db-driver=pgsql --pgsql-host="$PGHOST" --pgsql-port="$PGPORT" --pgsql-user="$PGUSER"
  --pgsql-db="$PGDATABASE" --tables=1 --table-size=1000 --threads=2 --time=4 --report-interval=1 --percentile=99)
"${oltp[@]}" prepare >/dev/null
"${oltp[@]}" run >sysbench_oltp.txt
hyperfine --shell=none --warmup 1 --runs 12 --export-json hyperfine.json 'sleep 0.01' 'sleep 0.012' >/dev/null 2>&1
rm -r "$folder"
