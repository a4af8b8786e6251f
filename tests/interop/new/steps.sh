# What a later Linux does with the target: secrets, TLS, two paths. Each step prints one line, "STEP ok NAME"
# or "STEP FAILED NAME". "ASK NAME" asks the machine around this one for something (see new/around.sh).
nqn=nqn.2026-11.io.rackweave
host=nqn.2014-08.org.nvmexpress:uuid:5d2f1c1e-7a0b-4a53-9f0e-0242ac120002
host_id=5d2f1c1e-7a0b-4a53-9f0e-0242ac120002

echo "$host" >/etc/nvme/hostnqn
echo "$host_id" >/etc/nvme/hostid

. /common.sh

# connect SUBSYSTEM PORT [OPTION...]: as the host of the subsystem's name.
connect() {
  of=$1 at=$2
  shift 2
  nvme connect -t tcp -a "$address" -s "$at" -n "$nqn:$of" -q "$nqn:$of-host" -I "$(id_of "$of")" -i 2 "$@" || return
  until_true 20 has_disk "$of" || return
  disk=/dev/$(disk_of "$of")
}

# Linux takes one name for one host id.
id_of() {
  case "$1" in
  one-way) last=3 ;;
  both-ways) last=4 ;;
  secured) last=5 ;;
  secured-and-proven) last=6 ;;
  long-secured) last=7 ;;
  esac
  echo "5d2f1c1e-7a0b-4a53-9f0e-0242ac12000$last"
}

disconnect() { nvme disconnect -n "$nqn:$1"; }

reset() {
  controller=$(controllers_of "$1")
  nvme reset "/dev/$controller" && until_true 30 grep -q live "/sys/class/nvme/$controller/state"
}

# make_secret FILE HASH: what the target keeps, by this suite's nvme-cli.
make_secret() {
  made=$(nvme gen-dhchap-key --hmac="$2" -n "$nqn:${1%%.*}-host") && keep "$1" "$made"
}

make_key() { made=$(nvme gen-tls-key --hmac="$2") && keep "$1" "$made"; }

keep() {
  echo "$1 $2"
  echo "$2" >"/tmp/$1"
  ask keep "$1" "$2"
}

made_secrets() {
  make_secret one-way.dhchap_secret 0 && make_secret both-ways.dhchap_secret 1 &&
    make_secret both-ways.dhchap_controller_secret 2 && make_secret secured-and-proven.dhchap_secret 3 &&
    make_key secured.tls_key 1 && make_key secured-and-proven.tls_key 1 && make_key long-secured.tls_key 2
}

discovered() {
  nvme discover -t tcp -a "$address" -s "$first_port" -q "$host" -I "$host_id" >/tmp/discovery 2>&1
  cat /tmp/discovery
  grep -q "trsvcid: *$first_port" /tmp/discovery && grep -q "trsvcid: *$second_port" /tmp/discovery
}

one_way() { connect one-way "$first_port" --dhchap-secret="$(cat /tmp/one-way.dhchap_secret)" "$@"; }
both_ways() {
  connect both-ways "$first_port" --dhchap-secret="$(cat /tmp/both-ways.dhchap_secret)" --dhchap-ctrl-secret="$1"
}

# agreed GROUP HASH: the target takes no other, and the kernel says what it took.
agreed() {
  ask dhchap "$1" "$2" && dmesg -c >/dev/null
  one_way && works "$1-$2" && reset one-way && works "$1-$2-again"
  ended=$?
  disconnect one-way && [ "$ended" = 0 ] || return
  [ "$1" = null ] || dmesg | grep -q "DH group $1" || { dmesg | tail; return 1; }
  dmesg | grep -q "hash hmac($2)"
}

proved_both_ways() {
  both_ways "$(cat /tmp/both-ways.dhchap_controller_secret)" && works both && reset both-ways && works again
  ended=$?
  disconnect both-ways
  return $ended
}

authentication_steps() {
  step "a host without its secret is refused" refused_because "authentication setup failed" connect one-way "$first_port"
  step "a host with another secret is refused" refused_because "authentication failed" connect one-way "$first_port" \
    --dhchap-secret="$(nvme gen-dhchap-key -n "$nqn:one-way-host")"
  step "a target with another secret is refused" refused_because "authentication failed" both_ways "$(nvme gen-dhchap-key -n other)"
  # Larger groups take an emulated processor longer than the target waits for a handshake.
  for pair in "null sha256" "ffdhe2048 sha384" "ffdhe3072 sha512" "ffdhe4096 sha256"; do
    step "secret, $pair, also after a reset" agreed $pair
  done
  step "both prove themselves, also after a reset" proved_both_ways
}

# insert SUBSYSTEM IDENTITY: its key into the kernel's keyring as the guide says, and none beside it.
insert() {
  keyctl clear %:.nvme || return
  nvme check-tls-key --insert --keydata="$(cat "/tmp/$1.tls_key")" --subsysnqn="$nqn:$1" --hostnqn="$nqn:$1-host" \
    --identity="$2"
}

started_tlshd() {
  printf '[debug]\nloglevel=1\ntls=1\n[authenticate]\nkeyrings=.nvme\n' >/etc/tlshd.conf
  tlshd --stderr >/tmp/tlshd.log 2>&1 &
  sleep 1
  kill -0 $!
}

# secured SUBSYSTEM IDENTITY DERIVATION
secured() {
  ask derivation "$3"
  insert "$1" "$2" && connect "$1" "$tls_port" --tls && works secured && reset "$1" && works again
  ended=$?
  keyctl list %:.nvme
  tail -n 6 /tmp/tlshd.log
  disconnect "$1"
  return $ended
}

# GnuTLS before 3.8.11 has no other hash than SHA-256 for the proof of a key, and tlshd uses what it has.
tlshd_has_sha384() { grep -q gnutls_psk_allocate_client_credentials2 "$(command -v tlshd)"; }

long_key() { insert long-secured 1 && connect long-secured "$tls_port" --tls; }

long_key_steps() {
  if tlshd_has_sha384; then
    step "TLS with a key of SHA-384, identity version 1, also after a reset" secured long-secured 1 any
    step "TLS with a key of SHA-384, identity version 0, also after a reset" secured long-secured 0 "$(derivation_of_names)"
  else
    step "a key of SHA-384 that tlshd proves by SHA-256 is refused" refused_because "TLS handshake complete, error" long_key
    step "and the target says why" ask logged "its key is proved by another hash than its own"
  fi
}

# Another key under the name of the right one.
wrong_key() {
  kept=$(cat /tmp/secured.tls_key)
  nvme gen-tls-key --hmac=1 >/tmp/secured.tls_key && insert secured 1 && connect secured "$tls_port" --tls
  ended=$?
  echo "$kept" >/tmp/secured.tls_key
  return $ended
}

without_secret() { insert secured-and-proven 1 && connect secured-and-proven "$tls_port" --tls; }

secured_and_proven() {
  insert secured-and-proven 1 &&
    connect secured-and-proven "$tls_port" --tls --dhchap-secret="$(cat /tmp/secured-and-proven.dhchap_secret)" &&
    works both && reset secured-and-proven && works again
  ended=$?
  disconnect secured-and-proven
  return $ended
}

# How this libnvme derives keys whose identity does not show it: its own way before 1.16.
derivation_of_names() {
  nvme version | awk -F '[ .]' '/^libnvme/ { print ($3 == 1 && $4 < 16) ? "libnvme" : "specification" }'
}

tls_steps() {
  step "tlshd runs" started_tlshd || return
  step "a host without TLS is refused" refused_because "failed to receive icresp" connect secured "$tls_port"
  step "a host with another key is refused" refused_because "TLS handshake complete, error" wrong_key
  step "TLS, identity version 1, also after a reset" secured secured 1 any
  step "TLS, identity version 0, also after a reset" secured secured 0 "$(derivation_of_names)"
  long_key_steps
  step "a secret on top of TLS is demanded" refused_because authentication without_secret
  step "a secret on top of TLS, also after a reset" secured_and_proven
}

path_steps() {
  step "one disk by two paths" two_paths paths "$first_port" "$second_port" || return
  step "the first path breaks and comes back under fio" lost_path paths cut-first mend-first
  step "the second path falls silent and comes back under fio" lost_path paths cut-second mend-second
  step "disconnect both paths" disconnect paths
}

connect_passing() {
  nvme connect -t tcp -a "$address" -s "$first_port" -n "$nqn:passing" -q "$host" -I "$host_id" -i 2 -c 1
}

# As blktests nvme/031 does by configfs. Every second time the subsystem goes while the host is connected.
came_and_went() {
  for turn in 1 2 3 4 5 6 7 8 9 10; do
    ask passing yes
    connect_passing && until_true 10 has_disk passing || return
    [ $((turn % 2)) = 0 ] || disconnect passing || return
    ask passing ""
    until_true 30 gone passing && refused connect_passing || return
  done
}

gone() { [ -z "$(controllers_of "$1")" ]; }

# disks_at PORT: the disks of the subsystem that the target there tells of.
disks_at() {
  for controller in $(grep -l "trsvcid=$1" /sys/class/nvme/nvme*/address); do
    controller=$(dirname "$controller")
    folder=$(dirname "$(grep -lx "$(cat "$controller/subsysnqn")" /sys/class/nvme-subsystem/*/subsysnqn)")
    ls "$folder" | grep -x 'nvme[0-9]*n[0-9]*'
  done
}

has_disk_at() { [ -b "/dev/$(disks_at "$1")" ]; }

# connect_whatever PORT: the subsystem that the target there tells of.
connect_whatever() {
  found=$(nvme discover -t tcp -a "$address" -s "$1" -q "$host" -I "$host_id" | sed -n 's/^subnqn: *//p' | grep -v discovery)
  echo "$found"
  nvme connect -t tcp -a "$address" -s "$1" -n "$found" -q "$host" -I "$host_id" -i 2
}

# wrote_noise DISK FILE
wrote_noise() {
  dd if=/dev/urandom of="$2" bs=64k count=4 2>/dev/null && dd if="$2" of="$1" bs=64k oflag=direct conv=fsync 2>/dev/null
}

# read_as DISK FILE: the disk begins with what is in the file, several times, whatever path is taken.
read_as() {
  for turn in 1 2 3 4; do
    dd if="$1" bs=64k count=4 iflag=direct 2>/dev/null | cmp - "$2" || return
  done
}

two_disks() {
  connect_whatever "$one_port" && connect_whatever "$another_port" || return
  until_true 20 has_disk_at "$one_port" && until_true 20 has_disk_at "$another_port" || { nvme list-subsys; return 1; }
  nvme list-subsys
  one=/dev/$(disks_at "$one_port") another=/dev/$(disks_at "$another_port")
  [ "$one" != "$another" ] && wrote_noise "$one" /tmp/one && wrote_noise "$another" /tmp/another &&
    read_as "$one" /tmp/one && read_as "$another" /tmp/another
}

echo "STEP ok booted $(uname -r) with nvme-cli $(nvme version | sed -n 's/^nvme version //p') after $(cut -d ' ' -f 1 /proc/uptime) s"
modprobe nvme-tcp
mount -t debugfs debugfs /sys/kernel/debug
echo 'file auth.c +p' >/sys/kernel/debug/dynamic_debug/control
step "secrets and keys are made" made_secrets || give_up
ask serve
if [ "${steps:-all}" = tls ]; then
  tls_steps
  give_up
fi
step "discover both ports" discovered || give_up
authentication_steps
tls_steps
path_steps
door_steps
step "two targets without names are two disks" two_disks
nvme disconnect-all
step "a subsystem comes and goes ten times" came_and_went
echo "STEP end"
