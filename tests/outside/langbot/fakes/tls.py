"""A service behind a fixed address: a proxy on loopback that answers in the place of whatever host it is asked for.

A plugin reaches it with nothing but its environment, as behind the proxy of a company: `HTTPS_PROXY` is this service,
and `SSL_CERT_FILE` its own certificate."""

import pathlib
import ssl
import subprocess
import tempfile

from .base import Fake


# The name of the certificate in a plugin's folder.
CERTIFICATE = "fake-certificate.pem"


class Behind(Fake):
    """A fake whose requests arrive through `CONNECT` and TLS."""

    # The name that the client connects to.
    name = ""

    def __init__(self):
        super().__init__()
        folder = pathlib.Path(tempfile.mkdtemp())
        self.certificate, key = folder / "certificate.pem", folder / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-keyout", key, "-out", self.certificate, "-days", "2", "-subj", f"/CN={self.name}",
                        "-addext", f"subjectAltName=DNS:{self.name}"], check=True, capture_output=True)
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(self.certificate, key)

    def connected(self, handler):
        """What follows on this connection is the conversation with the service."""
        handler.send_response(200)
        handler.end_headers()
        handler.connection = self.tls.wrap_socket(handler.connection, server_side=True)
        handler.rfile = handler.connection.makefile("rb")
        handler.wfile = handler.connection.makefile("wb", 0)
        handler.close_connection = False
