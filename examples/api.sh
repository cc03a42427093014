#!/bin/sh
# A page and a batch over the API of `seine serve`, with curl:
#   SEINE_KEY=seine_… sh examples/api.sh http://127.0.0.1:7420 https://example.com/ https://example.org/
set -eu
api="$1/api/v1"
shift

call() {
  curl --silent --show-error --fail-with-body -H "x-api-key: ${SEINE_KEY:-}" -H 'content-type: application/json' "$@"
}

# One page: the answer is the page.
call -d "{\"url\": \"$1\", \"formats\": [\"text\"]}" "$api/scrape"
echo

# Many pages, a line for each.
id=$(printf '%s\n' "$@" |
  curl --silent --show-error --fail-with-body -H "x-api-key: ${SEINE_KEY:-}" -H 'content-type: application/x-ndjson' \
    --data-binary @- "$api/batch" | sed 's/.*"batch_id":"\([^"]*\)".*/\1/')
until call "$api/jobs/$id?wait=30" | grep -q '"status":"\(completed\|failed\|stopped\|cancelled\)"'; do :; done
call -H 'accept: text/csv' "$api/jobs/$id/results"
