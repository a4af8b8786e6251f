# What a stock Linux host does with the target. Each step prints one line, "STEP ok NAME" or "STEP FAILED NAME".
#
# The target is at 10.0.2.2:$target_port: QEMU's name for 127.0.0.1 of the machine around it. "ASK NAME" asks that machine for
# something (see own/around.sh); it answers through the target alone.
nqn=nqn.2026-11.io.rackweave
subsystem=$nqn:interop
host=nqn.2014-08.org.nvmexpress:uuid:5d2f1c1e-7a0b-4a53-9f0e-0242ac120002
host_id=5d2f1c1e-7a0b-4a53-9f0e-0242ac120002
disk=/dev/nvme0n1

echo "$host" >/etc/nvme/hostnqn
echo "$host_id" >/etc/nvme/hostid

. /common.sh

connect() {
  nvme connect -t tcp -a "$address" -s "$target_port" -n "$subsystem" -q "$host" -I "$host_id" "$@" || return
  until_true 20 test -b "$disk"
}

disconnect() { nvme disconnect -n "$subsystem" && until_true 20 test ! -e "$disk"; }

discovered() {
  nvme discover -t tcp -a "$address" -s "$target_port" -q "$host" -I "$host_id" >/tmp/discovery
  cat /tmp/discovery
  grep -q "$subsystem" /tmp/discovery
}

# Line by line as somebody types them: the kernel shows a disk soon after `nvme connect`, and before the next line is typed.
followed_the_guide() {
  while read -r line; do
    case "$line" in *"$disk"*) until_true 20 test -b "$disk" || return ;; esac
    echo "guide: $line"
    eval "$line" || return
    case "$line" in *mount\ /dev*) grep -q " /mnt ext4 " /proc/mounts && echo newcomer >/mnt/file && sync || return ;; esac
  done </guide
  until_true 20 test ! -e "$disk"
}

is_one_of_two() { [ "$(blockdev --getsize64 "$disk")" = 67108864 ] && [ "$(blockdev --getss "$disk")" = "$1" ]; }

identified() {
  nvme id-ctrl /dev/nvme0 && nvme id-ns "$disk" && nvme ns-descs "$disk" && nvme list-ns /dev/nvme0 || return
  uuid=$(cat /sys/block/nvme0n1/uuid)
  echo "uuid $uuid"
  [ -z "$known_uuid" ] || [ "$known_uuid" = "$uuid" ]
}

logs() {
  nvme smart-log /dev/nvme0 && nvme error-log -e 1 /dev/nvme0 && nvme fw-log /dev/nvme0 && nvme effects-log /dev/nvme0 &&
    nvme changed-ns-list-log /dev/nvme0
}

features() { nvme get-feature /dev/nvme0 -f 7 && nvme get-feature /dev/nvme0 -f 0x0b && nvme get-feature /dev/nvme0 -f 0x0f; }

# The first 40 MiB; what lies behind is for raw reads and writes (block 100000 is at 49 MiB).
made_file_system() { /usr/bin/mke2fs -t ext4 -q -F "$disk" 40M && mount -t ext4 "$disk" /mnt; }

wrote_files() {
  for number in 1 2 3 4 5 6 7 8; do
    dd if=/dev/urandom of=/mnt/file$number bs=64k count=8 conv=fsync 2>/dev/null || return
  done
  (cd /mnt && md5sum file*) >/tmp/sums
  sync
}

files_are_there() {
  umount /mnt && mount -t ext4 "$disk" /mnt && (cd /mnt && md5sum -c /tmp/sums)
}

still_there() { mount -t ext4 "$disk" /mnt && (cd /mnt && md5sum -c /tmp/sums) && umount /mnt; }

# A discard that fails is silent but for the kernel's log.
trimmed() {
  dmesg -c >/dev/null
  mount -t ext4 -o discard "$disk" /mnt && fstrim -v /mnt && (cd /mnt && md5sum -c /tmp/sums) && umount /mnt &&
    ! dmesg | grep 'I/O'
}

reset() { nvme reset /dev/nvme0 && until_true 20 grep -q live /sys/class/nvme/nvme0/state; }

zeroed() {
  # Eight blocks hold noise, then zeroes, and then compare equal with zeroes alone.
  dd if=/dev/urandom of=/tmp/noise bs=4096 count=1 2>/dev/null
  dd if=/dev/zero of=/tmp/zeroes bs=4096 count=1 2>/dev/null
  nvme write "$disk" -s 100000 -c 7 -z 4096 -d /tmp/noise || return
  nvme compare "$disk" -s 100000 -c 7 -z 4096 -d /tmp/noise || return
  nvme write-zeroes "$disk" -s 100000 -c 7 || return
  nvme compare "$disk" -s 100000 -c 7 -z 4096 -d /tmp/zeroes || return
  ! nvme compare "$disk" -s 100000 -c 7 -z 4096 -d /tmp/noise
}

flushed_and_verified() { nvme flush "$disk" -n 1 && nvme verify "$disk" -s 0 -c 63; }

copied() {
  nvme write "$disk" -s 100200 -c 7 -z 4096 -d /tmp/noise && nvme copy "$disk" --sdlba=100300 --slbs=100200 --blocks=7 &&
    nvme compare "$disk" -s 100300 -c 7 -z 4096 -d /tmp/noise
}

# S-Direct's commands, as docs/reference/target.md writes them. Targets are blocks 100400 (18830h) and 100500 (18894h) of namespace 1.
cast() {
  printf '\1\0\0\0\0\0\0\0\060\210\1\0\0\0\0\0\1\0\0\0\0\0\0\0\224\210\1\0\0\0\0\0' >/tmp/targets
  nvme write "$disk" -s 100200 -c 7 -z 4096 -d /tmp/noise || return
  nvme io-passthru "$disk" -o 0x81 -n 1 --cdw10=100200 --cdw12=7 --cdw13=1 -l 32 -i /tmp/targets -w || return
  nvme compare "$disk" -s 100400 -c 7 -z 4096 -d /tmp/noise && nvme compare "$disk" -s 100500 -c 7 -z 4096 -d /tmp/noise
}

# 5 + 7 at the start of block 100600.
added() {
  printf '\5\0\0\0\0\0\0\0\7' >/tmp/word
  dd if=/tmp/word of=/tmp/words bs=4096 conv=sync 2>/dev/null
  nvme write "$disk" -s 100600 -c 7 -z 4096 -d /tmp/words || return
  nvme io-passthru "$disk" -o 0x84 -n 1 --cdw10=51507200 --cdw12=51507208 2>&1 | grep -i 'result: 0x0*c$'
}

reserved() {
  nvme resv-register "$disk" -n 1 --nrkey=0x1234 --rrega=0 --cptpl=3 || return
  nvme resv-acquire "$disk" -n 1 --crkey=0x1234 --rtype=1 --racqa=0 || return
  nvme resv-report "$disk" -n 1 --eds || nvme resv-report "$disk" -n 1 || return
}

released() {
  nvme resv-report "$disk" -n 1 --eds || return
  nvme resv-report "$disk" -n 1 --eds | grep -q 'regctl *: 1' || return
  nvme resv-release "$disk" -n 1 --crkey=0x1234 --rtype=1 --rrela=0 || return
  nvme resv-register "$disk" -n 1 --crkey=0x1234 --rrega=1
}

connect_as_stranger() {
  nvme connect -t tcp -a "$address" -s "$target_port" -n "$subsystem" -q "$nqn:stranger"
}

connect_to_nothing() {
  nvme connect -t tcp -a "$address" -s "$target_port" -n "$nqn:nothing" -q "$host" -I "$host_id"
}

out_of_range() { nvme read "$disk" -s 1000000000 -c 0 -z 512 -d /tmp/nothing; }

# Both the write that is underway and what was there before must survive the target's death.
survived_a_restart() {
  known_uuid=$(cat /sys/block/nvme0n1/uuid)
  dd if=/dev/urandom of=/tmp/noise bs=64k count=16 2>/dev/null
  dd if=/tmp/noise of="$disk" bs=64k seek=896 oflag=direct conv=fsync 2>/dev/null || return
  ask restart
  sleep 3
  until_true 60 grep -q live /sys/class/nvme/nvme0/state || return
  dd if="$disk" of=/tmp/back bs=64k skip=896 count=16 iflag=direct 2>/dev/null || return
  cmp /tmp/noise /tmp/back && identified
}

has_size() { [ "$(blockdev --getsize64 "$disk")" = "$1" ]; }

grew() {
  ask grow
  until_true 30 has_size 134217728
}

gained_a_namespace() {
  ask add
  until_true 30 test -b /dev/nvme0n2 && dd if=/dev/nvme0n2 of=/dev/null bs=64k count=4 iflag=direct
}

lost_a_namespace() {
  ask remove
  until_true 30 test ! -e /dev/nvme0n2
}

# A volume of a rack. Its switch, servers and door are processes of the machine around this one.
connect_volume() {
  nvme connect -t tcp -a "$address" -s "$door_port" -n "$nqn:volume" -q "$host" -I "$host_id" || return
  until_true 20 test -b "$disk" && [ "$(blockdev --getsize64 "$disk")" = 67108864 ] && [ "$(blockdev --getss "$disk")" = 4096 ]
}

# filled DISK: every page in order, and as many at random, so that its servers collect.
filled() {
  fio --name=fill --filename="$1" --direct=1 --ioengine=libaio --rw=write --bs=64k --iodepth=4 --size=100% &&
    fio --name=again --filename="$1" --direct=1 --ioengine=libaio --rw=randwrite --bs=4k --iodepth=8 --io_size=64m
}

# read_while_written DISK: prints percentiles of reads in us, while others write.
read_while_written() {
  fio --output-format=terse --terse-version=3 --filename="$1" --direct=1 --ioengine=libaio --bs=4k --time_based \
    --runtime=25 --percentile_list=50:99:99.9 --name=read --rw=randread --iodepth=1 --rate_iops=100 \
    --name=write --rw=randwrite --iodepth=4 --rate_iops=200 >/tmp/terse || return
  grep ';read;' /tmp/terse | tr ';' '\n' | grep -E '^(50|99|99\.9)[.0]*%=' | head -n 3 | sed 's/\.\{0,1\}0\{4,\}%=/ % in /' | tr '\n' ',' | sed 's/,$/ us/'
}

# What coordination does for reads: the same jobs on two racks that differ in nothing else, in turns.
latency_steps() {
  for name in coordinated uncoordinated; do
    at=$door_port
    [ $name = coordinated ] || at=$other_door_port
    step "connect to the $name volume" nvme connect -t tcp -a "$address" -s "$at" -n "$nqn:$name" -q "$host" \
      -I "$host_id" || return
  done
  until_true 20 test -b /dev/nvme1n1 || return
  for number in 0 1; do step "fill /dev/nvme${number}n1" filled /dev/nvme${number}n1 || return; done
  for turn in 1 2 3; do
    for number in 0 1; do
      name=$(sed 's/.*://' /sys/class/nvme/nvme$number/subsysnqn)
      if measured=$(read_while_written /dev/nvme${number}n1) && [ -n "$measured" ]; then
        echo "STEP ok $name, turn $turn: $measured"
      else
        echo "STEP FAILED $name, turn $turn"
      fi
    done
  done
  ask rack report
}

# A rack whose roles have the network 10.9.0.0/24.
write_rack() {
  mkdir -p /tmp/rack /run/netns && cd /tmp/rack || return
  head -c 32 /dev/urandom | md5sum >secret
  {
    printf 'folder = "state"\nsecret_file = "secret"\n[switch]\nlisten = "10.9.0.1:7000"\n[control]\nlisten = "10.9.0.2:7000"\n'
    printf '[[storage]]\nname = "s0"\nlisten = "10.9.0.3:7000"\n[[storage]]\nname = "s1"\nlisten = "10.9.0.4:7000"\n'
    printf '[[volume]]\nname = "disk"\nsize = "4MiB"\nreplicas = ["s0", "s1"]\n'
    printf '[[door]]\nname = "door"\nlisten = "10.9.0.5:7000"\nconfig = "target.toml"\n'
  } >rack.toml
  {
    printf '[[port]]\naddress = "10.9.0.5:4420"\n[[subsystem]]\nnqn = "nqn.2026-11.io.rackweave:delays"\n'
    printf '[[subsystem.namespace]]\nbackend = "volume"\nrack = "rack.toml"\ndoor = "door"\nvolume = "disk"\nblock = "4KiB"\n'
  } >target.toml
}

rack_is_up() { rackweave rack up --wait 200 rack.toml --netns 10.9.0.254/24 "$@" && rackweave rack status rack.toml; }

# median WHOSE: of reads that wait for each other, in us; it goes to the file of this name.
median() {
  rackweave disk 10.9.0.5:4420 bench --load random-read --seconds 10 --json >/tmp/json && cat /tmp/json &&
    sed -n 's/.*"p50_us": *\([0-9]*\).*/\1/p' /tmp/json >"/tmp/$1" && [ -s "/tmp/$1" ]
}

# The shortest of ten ways to each role and back.
has_one_delay() {
  for role in 1 2 3 4 5; do
    ping -c 10 -i 0.2 -q 10.9.0.$role | tee /tmp/ping
    shortest=$(sed -n 's|.*min/avg/max = \([0-9]*\)\..*|\1|p' /tmp/ping)
    [ -n "$shortest" ] && [ "$shortest" -ge 20 ] && [ "$shortest" -lt 24 ] || return
  done
}

# A read leaves a role five times: the door for the switch, the switch for a server, the server for the
# switch, the switch for the door, and the door for its host. Emulated processors wake up late.
has_five_delays() {
  median delayed || return
  more=$(($(cat /tmp/delayed) - $(cat /tmp/plain)))
  echo "20 ms of delay: $(cat /tmp/plain) us became $(cat /tmp/delayed) us, $more more"
  [ "$more" -ge 98000 ] && [ "$more" -lt 160000 ]
}

delays_steps() {
  step "write the files of a rack" write_rack || return
  step "a rack in namespaces" rack_is_up || return
  step "its disk, verified" rackweave disk 10.9.0.5:4420 verify --overwrite --bytes 64KiB
  step "its reads" median plain
  step "down" rackweave rack down rack.toml || return
  step "a rack whose roles delay what they send" rack_is_up --delay 20ms || return
  step "each role delays what it sends" has_one_delay
  step "its disk has what was written" rackweave disk 10.9.0.5:4420 verify --overwrite --bytes 64KiB
  step "a read takes five delays more" has_five_delays && sed -n '$s|^|    |p' /tmp/output
  step "down again" rackweave rack down rack.toml
}

died_and_came() { ask rack kill "$1" && sleep 2 && ask rack up; }

# lost ROLE: it dies and comes again while fio writes.
lost() { written_while died_and_came "$1" && ! dmesg | grep 'I/O error'; }

# Debian 12's kernel is built without DH-HMAC-CHAP: such a host must be refused. What has it is in secure.sh.
connect_guarded() {
  nvme connect -t tcp -a "$address" -s "$target_port" -n "$nqn:guarded" \
    -q "$nqn:guarded-host" -I 5d2f1c1e-7a0b-4a53-9f0e-0242ac120003
}

echo "STEP ok booted $(uname -r) after $(cut -d ' ' -f 1 /proc/uptime) s"
if [ "$steps" = latency ]; then
  modprobe nvme-tcp
  latency_steps
  give_up
fi
if [ "$steps" = delays ]; then
  delays_steps
  give_up
fi
step "the guide's lines" followed_the_guide || { umount /mnt 2>/dev/null; nvme disconnect-all; }
step "discover" discovered
step "a wrong subsystem is refused" refused_because "Invalid Data Parameter" connect_to_nothing
step "a host that is not allowed is refused" refused_because "not allowed" connect_as_stranger
step "connect" connect || give_up
step "the disk has its size" is_one_of_two 512
step "identify" identified
step "logs" logs
step "features" features
step "fio with verify, 4 KiB at depth 16" verified small 4k 16 8m
step "fio with verify, 512 KiB at depth 4" verified large 512k 4 32m
step "mkfs.ext4 and mount" made_file_system
step "files with fsync" wrote_files
step "umount, mount, compare" files_are_there
umount /mnt
step "reset" reset
step "files after a reset" still_there
if [ "$steps" = all ]; then
  step "trim" trimmed
  step "write zeroes and compare" zeroed
  step "flush and verify" flushed_and_verified
  step "copy" copied
  step "multicast" cast
  step "add_write" added
  step "a read outside is refused" refused out_of_range
  step "reservation" reserved
  step "the target dies and comes back" survived_a_restart
  step "the reservation has survived, release it" released
  step "files after the restart" still_there
  step "the namespace grows" grew
  step "a namespace is added" gained_a_namespace
  step "a namespace is removed" lost_a_namespace
fi
step "disconnect" disconnect
step "connect with digests" connect --hdr-digest --data-digest
step "files under digests" still_there
step "fio with verify under digests" verified digests 16k 8 4m
step "disconnect after digests" disconnect
step "connect to a replicated volume" connect_volume || give_up
step "fio with verify while a server of the volume dies and comes back" lost s0
if [ "$steps" = all ]; then
  step "the switch dies and comes back under fio" lost switch
  step "the control plane dies and comes back under fio" lost control
  step "the other server dies and comes back under fio" lost s1
fi
step "disconnect from the volume" nvme disconnect -n "$nqn:volume"
until_true 20 test ! -e "$disk"
door_steps
if [ "$steps" = all ]; then
  disk=/dev/nvme0n1
  until_true 20 test ! -e "$disk"
  step "connect with two queues of 16, flow control off" connect --nr-io-queues=2 --queue-size=16 --disable-sqflow
  step "fio with verify, flow control off" verified flow 4k 16 2m
  step "disconnect at the end" disconnect
  step "a host without its secret is refused" refused connect_guarded
fi
echo "STEP end"
