#!/bin/sh
# The service was started by the agent and is still running: its answers are the result.
if python3 /tests/check_service.py; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
