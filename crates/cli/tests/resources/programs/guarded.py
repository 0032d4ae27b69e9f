"""An MCP server over HTTP behind OAuth, and its authorization server. The argument says what is wrong with it."""
import base64, hashlib, json, sys, threading, urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

VICE = sys.argv[1]
codes, tokens, refreshed, used = {}, {"valid"}, [0], set()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body, **headers):
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        own = f"http://127.0.0.1:{self.server.server_port}"
        path, _, query = self.path.partition("?")
        if path == "/.well-known/oauth-protected-resource/mcp":
            issuer = "http://169.254.169.254" if VICE == "leads-away" else own
            resource = "https://evil.example/mcp" if VICE == "other-resource" else f"{own}/mcp"
            self.answer(200, {"resource": resource, "authorization_servers": [issuer], "scopes_supported": ["read"]})
        elif path == "/.well-known/oauth-authorization-server":
            if VICE == "huge":
                return self.answer(200, b"{" + b" " * 5_000_000 + b"}")
            endless = {"issuer": own, "authorization_endpoint": f"{own}/authorize", "token_endpoint": f"{own}/token", "registration_endpoint": f"{own}/register", "code_challenge_methods_supported": ["S256"], "authorization_response_iss_parameter_supported": True}
            self.answer(200, endless)
        elif path == "/authorize":
            asked = {name: value[0] for name, value in urllib.parse.parse_qs(query).items()}
            assert asked["resource"] == f"{own}/mcp" and asked["scope"] == "read", asked
            codes["the-code"] = asked
            back = urllib.parse.urlencode({"code": "the-code", "state": asked["state"], "iss": "https://evil.example" if VICE == "other-issuer" else own})
            self.answer(302, b"", Location=f"{asked['redirect_uri']}?{back}")
        else:
            self.answer(404, {})

    def do_POST(self):
        own = f"http://127.0.0.1:{self.server.server_port}"
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/register":
            return self.answer(201, {"client_id": "the-client", "client_secret": "the-client-secret", **json.loads(body)})
        if self.path == "/token":
            return self.token(urllib.parse.parse_qs(body.decode()))
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in tokens or token == "valid":
            challenge = f'Bearer resource_metadata="{own}/.well-known/oauth-protected-resource/mcp"'
            return self.answer(401, {}, WWW_Authenticate=challenge)
        message = json.loads(body)
        method, id = message.get("method"), message.get("id")
        results = {
            "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "guarded", "version": "1"}},
            "tools/list": {"tools": [{"name": "whoami", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": f"token {token}, {refreshed[0]} refreshes"}]},
        }
        if method in results:
            self.answer(200, {"jsonrpc": "2.0", "id": id, "result": results[method]})
        elif id is None:
            self.answer(202, b"")
        else:
            self.answer(500, b"<html>no such method</html>", Content_Type="text/html")

    def token(self, form):
        form = {name: value[0] for name, value in form.items()}
        if VICE == "junk":
            return self.answer(200, b"\x00<html>not a token</html>")
        if form["grant_type"] == "refresh_token":
            if form["refresh_token"] != "the-refresh-token":
                return self.answer(400, {"error": "invalid_grant"})
            refreshed[0] += 1
        else:
            asked = codes.pop(form["code"], None)
            verifier = hashlib.sha256(form["code_verifier"].encode()).digest()
            challenge = base64.urlsafe_b64encode(verifier).rstrip(b"=").decode()
            if not asked or challenge != asked["code_challenge"] or form["redirect_uri"] != asked["redirect_uri"]:
                return self.answer(400, {"error": "invalid_grant", "error_description": "wrong verifier"})
        token = f"the-access-token-{refreshed[0]}"
        tokens.add(token)
        lifetime = 31 if VICE == "short" and not refreshed[0] else 3600
        self.answer(200, {"access_token": token, "token_type": "bearer", "expires_in": lifetime, "refresh_token": "the-refresh-token"})


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
