"""A method that tells its credential wherever it can, and keeps a list of what must not be found."""
import base64, json, os, sys, time

method = sys.argv[2]
secret = os.environ.get("GREENROOM_CREDENTIAL") or sys.stdin.readline().strip()
payload = sys.stdin.read()
body = secret.split("_")[1]


def inner(encode, offset):
    """Of base64 what does not depend on its neighbours."""
    padded = bytes(offset) + secret.encode()
    first, last = -(-offset * 8 // 6), len(padded) * 8 // 6
    return encode(padded).decode()[first:last]


encoders = (base64.b64encode, base64.urlsafe_b64encode)
percent = "".join(f"%{byte:02X}" for byte in secret.encode())
forms = [secret, percent, percent.lower()]
forms += [encode((before + secret).encode()).decode() for encode in encoders for before in ("", "a", "ab")]
forbidden = [secret, body, body[-24:], percent] + [inner(encode, offset)[8:] for encode in encoders for offset in range(3)]
with open("out/forbidden", "a") as file:
    file.writelines(json.dumps(form) + "\n" for form in forbidden)
with open("out/credential.part", "w") as file:
    file.write(secret)
os.rename("out/credential.part", "out/credential")

told = {"environment": dict(os.environ), "forms": forms, secret: secret, "text": " and ".join(forms)}
if method == "result":
    print(json.dumps({"ok": True, "data": told}))
elif method == "large":
    print(json.dumps({"ok": True, "data": {"padding": "x" * 400_000, **told}}))
elif method == "error":
    print(json.dumps({"ok": False, "error": {"code": secret, "message": " ".join(forms), "told": told}}))
    sys.exit(1)
elif method == "crash":
    # What is kept of this begins in the middle of the credential.
    os.write(2, (" ".join(forms) + "\n" + secret + "x" * (4096 - 40)).encode())
    print(secret)
    os.abort()
elif method == "complain":
    os.write(2, (" ".join(forms) + "\n").encode())
    print(secret)
    sys.exit(3)
elif method == "garbage":
    print(secret, *forms)
elif method == "hold":
    while not os.path.exists("out/go"):
        time.sleep(0.005)
    print(json.dumps({"ok": True, "data": {}}))
elif method == "look":
    def attempt(path):
        try:
            with open(path, "rb") as file:
                return file.read(100_000).decode("latin-1")
        except OSError as error:
            return type(error).__name__
    pid = json.loads(payload)["pid"]
    files = ("environ", "cmdline", "mem", "maps", "fd/0", "stat")
    print(json.dumps({"ok": True, "data": {name: attempt(f"/proc/{pid}/{name}") for name in files}}))
