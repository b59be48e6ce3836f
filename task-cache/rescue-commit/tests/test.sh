#!/bin/sh
# The lost commit is known by its hash: nothing else has the same history and content.
wanted=504010004fab8a2e88a0c8d7bf96665d28523348
reward=0
if cd /app/notes &&
  [ "$(git rev-parse main)" = "$wanted" ] &&
  [ "$(git symbolic-ref HEAD)" = refs/heads/main ] &&
  [ -z "$(git status --porcelain)" ]; then
  reward=1
fi
echo "$reward" > /logs/verifier/reward.txt
