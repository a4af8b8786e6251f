#!/bin/sh
# The first process of the guest: brings up what a host needs, runs the steps, switches off.
/bin/busybox --install -s /bin
export PATH=/usr/bin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /tmp
# A module that is built in is no loss.
while read -r module; do [ "$module" = nvme-tcp ] || modprobe "$module" 2>/dev/null; done </modules
ip link set lo up
ip link set eth0 up
ip address add 10.0.2.15/24 dev eth0
for word in $(cat /proc/cmdline); do
  case "$word" in
  *_port=* | steps=*) export "${word?}" ;;
  esac
done
sh /steps.sh
echo o >/proc/sysrq-trigger
sleep 60
