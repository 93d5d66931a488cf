#!/usr/bin/env bash
# Start Bull Board over the queues of the drivefeed that runs here; 'make board' calls this.
set -euo pipefail
cd "$(dirname "$0")/.."

# The running daemon knows where its Redis is: its own Valkey, or the one from the settings.
exports="$(.venv/bin/drivefeed board-env)"
eval "$exports"

if [[ -z "${BULL_BOARD_PASSWORD:-}" ]]; then
  BULL_BOARD_PASSWORD="$(.venv/bin/python -c 'import secrets; print(secrets.token_urlsafe(12))')"
  export BULL_BOARD_PASSWORD
  echo "The board's user is ${BULL_BOARD_USER:-admin}, its password for this run is $BULL_BOARD_PASSWORD"
  echo "(set BULL_BOARD_PASSWORD to choose one)."
fi

cd bull-board
exec node server.mjs
