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
