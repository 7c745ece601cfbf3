"""examples/serve/http_server.py: eight clients at once get the right numbers, and a bad request a sentence."""

import http.client
import importlib.util
import io
import pathlib
import threading
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = dict(np.load(ROOT / "models/digits_test.npz"))
spec = importlib.util.spec_from_file_location("http_server", ROOT / "examples/serve/http_server.py")
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)


def packed(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


class HttpServer(unittest.TestCase):
    def setUp(self):
        self.server = example.serve(str(ROOT / "models/digits.onnx"), 0)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.server.server_port)

    def ask(self, connection, body):
        connection.request("POST", "/", body)
        response = connection.getresponse()
        return response.status, response.read()

    def client(self, k, wrong):
        connection = self.connect()
        for i in range(k, 360, 8):
            status, body = self.ask(connection, packed(image=DATA["image"][i:i + 1]))
            found = np.load(io.BytesIO(body))["logits"] if status == 200 else None
            if found is None or not np.allclose(found, DATA["logits"][i:i + 1], rtol=1e-4, atol=1e-4):
                wrong.append((i, status, body[:200]))
        connection.close()

    def test_eight_clients(self):
        wrong = []
        threads = [threading.Thread(target=self.client, args=(k, wrong)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_counters_are_for_prometheus(self):
        connection = self.connect()
        for body in (packed(image=DATA["image"][:1]), packed(image=DATA["image"][:2]), packed(image=DATA["image"][0])):
            self.ask(connection, body)
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        rows = dict(line.rsplit(" ", 1) for line in response.read().decode().splitlines() if not line.startswith("#"))
        self.assertTrue(response.headers["Content-Type"].startswith("text/plain"))
        counts = {name[name.index("status="):]: value for name, value in rows.items() if name.startswith("dlc_runs_total")}
        self.assertEqual(counts, {'status="ok"}': "2"})  # what is refused by its rank never became a run
        self.assertTrue(all(float(value) >= 0 for value in rows.values()))
        connection.request("GET", "/else")
        self.assertEqual(connection.getresponse().status, 404)

    def test_bad_requests_are_answered(self):
        connection = self.connect()
        for body, sentence in ((b"hello", b""), (packed(picture=np.zeros(3)), b"there is no input 'picture'"),
                               (packed(image=np.zeros((1, 2, 8, 8), np.float32)), b"image")):
            status, said = self.ask(connection, body)
            self.assertEqual(status, 400)
            self.assertIn(sentence, said)
            self.assertTrue(said)
        connection.close()


if __name__ == "__main__":
    unittest.main()
