#!/bin/sh
# Pages of a list. Columns besides the URL become `meta`.
set -eu
shop=${JOB_SHOP_URL:-http://127.0.0.1:8080/}
list=$(mktemp -d)/pages.csv
cat > "$list" <<END
url,owner
${shop}about,Ana
${shop}help/shipping,Ben
not a URL,Eve
END
npx seine run "$list" --select title=h1 --allow-private
npx seine export pages --what tasks
rm -r "$(dirname "$list")"
