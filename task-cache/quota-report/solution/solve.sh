#!/bin/bash
set -e
# Only what the base has: awk and sort.
awk '
  function bytes(text,  unit) {
    unit = substr(text, length(text))
    return substr(text, 1, length(text) - 1) * (unit == "K" ? 1024 : unit == "M" ? 1048576 : unit == "G" ? 1073741824 : 1)
  }
  NR == 1 || /^#/ || NF == 0 { next }
  {
    name = substr($0, 1, 12); used = substr($0, 13, 10); quota = substr($0, 23, 10)
    gsub(/ /, "", name); gsub(/ /, "", used); gsub(/ /, "", quota)
    if (quota == "-") next
    over = bytes(used) - bytes(quota)
    if (over > 0) printf "%.0f %s\n", over, name
  }
' /app/usage.txt | LC_ALL=C sort -k1,1nr -k2,2 | awk '
  { printf "%s{\"account\": \"%s\", \"over_bytes\": %s}", (NR > 1 ? ", " : "["), $2, $1 }
  END { print (NR == 0 ? "[]" : "]") }
' > /app/over.json
