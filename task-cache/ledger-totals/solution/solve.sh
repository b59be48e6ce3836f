#!/bin/bash
set -e
awk -F, '
  NR > 1 { account[$1] = $3; cents[$1] = $4; if ($5 != "") corrected[$5] = 1 }
  END {
    for (id in account) if (!(id in corrected)) total[account[id]] += cents[id]
    for (name in total) print name "," total[name]
  }
' /app/ledger.csv | LC_ALL=C sort -t, -k1,1 > /app/totals.csv
