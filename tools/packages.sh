# To be sourced. Installs packages of Debian as root, where there is apt-get; fails elsewhere.

# install_packages WHY PACKAGE...
install_packages() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return
  echo "$(basename "$0" .sh): installing ${*:2}, $1"
  apt-get update --quiet --quiet >/dev/null &&
    DEBIAN_FRONTEND=noninteractive apt-get install --quiet --quiet --yes --no-install-recommends "${@:2}" \
      </dev/null >/dev/null
}

# missing WHAT PACKAGE: in CI an error, elsewhere a sentence.
missing() {
  if [ "${CI:-}" = true ]; then
    echo "$(basename "$0" .sh): required here: as root, apt-get install $2" >&2
    exit 1
  fi
  echo "$(basename "$0" .sh): SKIPPED: $1 (as root: apt-get install $2)"
}
