# What the steps of all guests share.
#
# The target is at 10.0.2.2: QEMU's name for 127.0.0.1 of the machine around it.
address=10.0.2.2

# step NAME COMMAND...: runs it, keeps what it says, and shows that where it fails.
step() {
  name=$1
  shift
  if "$@" >/tmp/output 2>&1; then
    echo "STEP ok $name"
  else
    echo "STEP FAILED $name (exit code $?)"
    sed 's/^/    /' /tmp/output | tail -n 20
    dmesg | grep -i nvme | tail -n 8 | sed 's/^/    kernel: /'
    return 1
  fi
}

give_up() {
  echo "STEP end"
  exit
}

# until_true SECONDS COMMAND...: three times as long, for the machine around this one may have other work.
until_true() {
  left=$(($1 * 3))
  shift
  while ! "$@" >/dev/null 2>&1; do
    left=$((left - 1))
    [ "$left" -gt 0 ] || return 1
    sleep 1
  done
}

# ask NAME...: asks the machine around this one for something (see guest.sh), and returns when it is done,
# or has failed.
ask() {
  echo "ASK $*" >/dev/console
  read -r became </dev/console && [ "$became" = done ]
}

# verified NAME BLOCK-SIZE DEPTH SIZE [OPTION...], of $disk
verified() {
  job=$1 block=$2 depth=$3 size=$4
  shift 4
  fio --name="$job" --filename="$disk" --direct=1 --ioengine=libaio --rw=randwrite --bs="$block" --iodepth="$depth" \
    --size="$size" --verify=crc32c --verify_fatal=1 --do_verify=1 --end_fsync=1 "$@"
}

# written_while COMMAND...: fio writes $disk for some ten seconds and reads all back, and again until the
# command has ended; the command has to succeed meanwhile.
written_while() {
  dmesg -c >/dev/null
  rm -f /tmp/over
  until_over verified lost 4k 4 4m --rate_iops=100 >/tmp/fio 2>&1 &
  writer=$!
  sleep 2
  "$@" && kill -0 $writer
  code=$?
  : >/tmp/over
  wait $writer && [ "$code" = 0 ] || { cat /tmp/fio; return 1; }
}

# until_over COMMAND...: runs it once, and again until somebody has made /tmp/over.
until_over() {
  "$@" || return
  while [ ! -e /tmp/over ]; do "$@" || return; done
}

refused() { ! "$@"; }

# The kernel must have been told why.
refused_because() {
  reason=$1
  shift
  ! "$@" && dmesg | tail -n 5 | grep "$reason"
}

# folder_of SUBSYSTEM: where the kernel keeps what it knows of it.
folder_of() { dirname "$(grep -lx "$nqn:$1" /sys/class/nvme-subsystem/*/subsysnqn 2>/dev/null)"; }
disk_of() { ls "$(folder_of "$1")" | grep -x 'nvme[0-9]*n[0-9]*'; }
controllers_of() { ls "$(folder_of "$1")" | grep -x 'nvme[0-9]*'; }
has_disk() { [ -b "/dev/$(disk_of "$1")" ]; }

# works NAME: fio writes $disk and reads it back.
works() { verified "$1" 16k 4 1m; }

# connect_path PORT SUBSYSTEM
connect_path() {
  nvme connect -t tcp -a "$address" -s "$1" -n "$nqn:$2" -q "$host" -I "$host_id" -i 2 --keep-alive-tmo=3 \
    --reconnect-delay=1
}

# How many paths of a subsystem are live.
live_paths() {
  for path in $(controllers_of "$1"); do cat "/sys/class/nvme/$path/state"; done | grep -cx live
}

has_live_paths() { [ "$(live_paths "$1")" = "$2" ]; }

# two_paths SUBSYSTEM PORT PORT
two_paths() {
  connect_path "$2" "$1" && connect_path "$3" "$1" && until_true 20 has_disk "$1" && until_true 20 has_live_paths "$1" 2 || return
  disk=/dev/$(disk_of "$1")
  nvme list-subsys
  ls /sys/block
  echo round-robin >"$(folder_of "$1")/iopolicy"
  [ "$(controllers_of "$1" | wc -l)" = 2 ] && [ "$(disk_of "$1" | wc -l)" = 1 ]
}

path_went() { ask $2 && until_true 30 has_live_paths "$1" 1 || { nvme list-subsys; return 1; }; }

# lost_path SUBSYSTEM CUT MEND: a path goes while fio writes, and comes again.
lost_path() {
  written_while path_went "$1" "$2" || return
  works one-path && ask $3 && until_true 40 has_live_paths "$1" 2 && works two-paths || return
  ! dmesg | grep 'I/O error'
}

door_steps() {
  step "a replicated volume by two doors" two_paths volume "$door_port" "$other_door_port" || return
  step "a door dies and comes back under fio" lost_path volume "rack kill a" "rack up"
  step "the other door dies and comes back under fio" lost_path volume "rack kill b" "rack up"
  step "disconnect both doors" nvme disconnect -n "$nqn:volume"
}
