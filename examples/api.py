"""A batch over the API of `seine serve`, with the standard library alone.

    SEINE_KEY=seine_… python3 examples/api.py http://127.0.0.1:7420 https://example.com/ https://example.org/
"""
import json
import os
import sys
import uuid
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen


def call(method, path, body=None, headers=None):
    key = os.environ.get("SEINE_KEY")
    sent = {"content-type": "application/json"} if body is not None else {}
    sent |= {"x-api-key": key} if key else {}
    data = None if body is None else json.dumps(body).encode()
    request = Request(f"{server}/api/v1{path}", data, sent | (headers or {}), method=method)
    try:
        with urlopen(request) as answer:
            return json.load(answer)
    except HTTPError as error:
        problem = json.load(error)
        sys.exit(f"{problem['code']}: {problem['detail']} {problem['remedy']}")


server, *urls = sys.argv[1:]
# Sent again under the same key, the request gets the same answer.
once = {"idempotency-key": f'"{uuid.uuid4()}"'}
batch = call("POST", "/batch", {"urls": urls}, once)
for row in batch["rejected"]:
    print(f"rejected {row['url']}: {row['reason']}")

while True:
    job = call("GET", f"/jobs/{batch['batch_id']}?wait=30")
    if job["status"] not in ("queued", "running"):
        break
print(job["status"], job["counts"]["succeeded"], "of", job["counts"]["total"])

cursor = None
while True:
    query = {"formats": "text", "limit": 20} | ({"cursor": cursor} if cursor else {})
    page = call("GET", f"/jobs/{batch['batch_id']}/results?{urlencode(query)}")
    for row in page["results"]:
        print(row["status"], row["url"], row["code"] or len(row.get("text") or ""))
    cursor = page["next_cursor"]
    if cursor is None:
        break
