"""Serves a model over HTTP: POST a .npz of the inputs, get a .npz of the outputs.

    python3 http_server.py MODEL [PORT]

GET /metrics has the counters for Prometheus. A request that does not fit is answered by 400 and a sentence. Any number of clients: a session runs in all threads at once.
"""

import http.server
import io
import sys

import dlc
import numpy


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    session: dlc.InferenceSession

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            with numpy.load(io.BytesIO(body), allow_pickle=False) as feed:
                outputs = self.session.run(None, dict(feed))
        except (ValueError, OSError, EOFError) as error:  # no npz, or dlc refuses what is in it
            self.answer(400, "text/plain; charset=utf-8", str(error).encode())
            return
        result = io.BytesIO()
        numpy.savez(result, **{row.name: output for row, output in zip(self.session.get_outputs(), outputs)})
        self.answer(200, "application/octet-stream", result.getvalue())

    def do_GET(self) -> None:
        if self.path == "/metrics":
            self.answer(200, "text/plain; version=0.0.4; charset=utf-8", self.session.counters().encode())
        else:
            self.answer(404, "text/plain; charset=utf-8", b"there are POST / and GET /metrics")

    def answer(self, code: int, kind: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def serve(model: str, port: int) -> http.server.ThreadingHTTPServer:
    """The server, not yet started; port 0 takes any that is free."""
    handler = type("Bound", (Handler,), {"session": dlc.InferenceSession(model, threads=1)})
    return http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)


if __name__ == "__main__":
    server = serve(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 8080)
    print(f"http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()
