"""A JSON-over-HTTP client of the standard library, enough for the rigs and their proofs."""
import base64
import json
import urllib.error
import urllib.request


class Rest:
    def __init__(self, url, user=None, password=None, headers=None):
        self.url = url.rstrip("/")
        self.headers = {"Accept": "application/json", **(headers or {})}
        if user:
            pair = base64.b64encode(f"{user}:{password}".encode()).decode()
            self.headers["Authorization"] = f"Basic {pair}"

    def ask(self, method, path, body=None, **headers):
        """Status and decoded answer; an HTTP error is an answer too, a dead socket raises OSError."""
        sent = {**self.headers, **headers}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        request = urllib.request.Request(self.url + path, data, sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, decoded(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, decoded(error.read())

    def must(self, method, path, body=None, **headers):
        """The decoded answer of a request that has to succeed."""
        status, answer = self.ask(method, path, body, **headers)
        if status >= 300:
            raise RuntimeError(f"{method} {path} answered {status}: {answer}")
        return answer


def decoded(raw):
    try:
        return json.loads(raw) if raw else None
    except ValueError:
        return raw.decode(errors="replace")
