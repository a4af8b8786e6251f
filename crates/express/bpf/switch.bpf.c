// The data path of a live rack's switch in the kernel (XDP): docs/decisions/xdp-switch.md.
//
// It forwards sound packets of reads, writes, their answers and messages between replicas, and turns reads that the
// map `redirects` names. All else goes up to the role, which decides about tables and fills the maps. What a sound
// packet is, crates/blox/src/packet/codec says; a test compares both, byte by byte (crates/volumes/src/switch/tests.rs).

#include <linux/bpf.h>

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
// How a map is described to its loader.
#define NUMBER(name, value) int(*name)[value]
#define TYPE(name, type) type *name

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the constants below are for machines that store the low byte first"
#endif
#define BE16(number) __builtin_bswap16(number)
#define BE32(number) __builtin_bswap32(number)
#define BE64(number) __builtin_bswap64(number)

static void *(*const map_lookup)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static __u64 (*const buffer_length)(struct xdp_md *context) = (void *)BPF_FUNC_xdp_get_buff_len;

// What the loader sets. Bytes are in their order on the wire.
const volatile __u64 rack_tag;
const volatile __u32 own_address;
const volatile __u16 own_port;
// The station of the interface: its first four bytes, and its last two.
const volatile __u32 own_station;
const volatile __u16 own_station_end;
// Reads for nodes below are looked up (`SwitchConfig::nodes`).
const volatile __u32 inside;

// Where a node is. Bytes are in their order on the wire.
struct neighbour {
  __u32 address;
  __u16 port;
  __u16 station_end;
  __u32 station;
  __u32 unused;
};

// Elements are replaced whole, never in place: a packet sees the old one or the new one.
struct {
  NUMBER(type, BPF_MAP_TYPE_HASH);
  NUMBER(map_flags, BPF_F_NO_PREALLOC);
  NUMBER(max_entries, 1024);
  TYPE(key, __u32);
  TYPE(value, struct neighbour);
} nodes SEC(".maps");

// A vSSD whose reads a replica serves now: the server and the vSSD, as on the wire. The loader sets the room.
struct redirect {
  __u32 target;
  __u32 vssd;
};

struct {
  NUMBER(type, BPF_MAP_TYPE_HASH);
  NUMBER(map_flags, BPF_F_NO_PREALLOC);
  NUMBER(max_entries, 1024);
  TYPE(key, __u32);
  TYPE(value, struct redirect);
} redirects SEC(".maps");

// What became of packets for the switch. crates/express/src/lib.rs has the same order.
enum counted {
  FORWARDED,
  REDIRECTED,
  // Not of the data path: the role's.
  CONTROL,
  // Not exactly a packet of this rack in one frame. The role says what is wrong.
  UNSOUND,
  // Where the node is, is not known.
  UNKNOWN,
  // Its sender left the checksum to a card that it did not pass.
  UNSUMMED,
  COUNTS,
};

struct {
  NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  NUMBER(max_entries, COUNTS);
  TYPE(key, __u32);
  TYPE(value, __u64);
} counts SEC(".maps");

// Places in a frame: Ethernet, IPv4 without options, UDP, the rack's tag, and a packet.
enum place {
  TARGET_STATION = 0,
  SOURCE_STATION = 6,
  ETHER_TYPE = 12,
  IP = 14,
  IP_LENGTH = 16,
  IP_FRAGMENT = 20,
  IP_HOPS = 22,
  IP_PROTOCOL = 23,
  IP_CHECK = 24,
  IP_SOURCE = 26,
  IP_TARGET = 30,
  UDP = 34,
  UDP_SOURCE = 34,
  UDP_TARGET = 36,
  UDP_LENGTH = 38,
  UDP_CHECK = 40,
  TAG = 42,
  MAGIC = 50,
  TARGET = 58,
  OPERATION = 62,
  VSSD = 63,
  BODY = 71,
};

#define BYTE(at) (*(__u8 *)(frame + (at)))
#define HALF(at) (*(__u16 *)(frame + (at)))
#define WORD(at) (*(__u32 *)(frame + (at)))
#define LONG(at) (*(__u64 *)(frame + (at)))

enum {
  IPV4 = 0x0800,
  VERSION_AND_LENGTH = 0x45,
  MORE_OR_OFFSET = 0x3fff,
  PROTOCOL_UDP = 17,
  // A new packet's, as the role's would be.
  HOPS = 64,
  MAGIC_RBX1 = 0x52425831,
  PAGE = 4096,
  VALUE = 8,
};

enum operation {
  WRITE = 3,
  READ = 4,
  READ_REPLY = 16,
  WRITE_REPLY = 17,
  REPEATABLE_WRITE = 18,
  INVALIDATE = 32,
  ACKNOWLEDGE = 33,
  VALIDATE = 34,
  FETCH = 35,
  FETCHED = 36,
  REPEATABLE_INVALIDATE = 37,
  FETCH_AFTER = 38,
  REMEMBERED = 39,
  RECALL = 40,
  RECALLED = 41,
  REFUSAL_MAX = 6,
};

INLINE void count(__u32 what) {
  __u64 *number = map_lookup(&counts, &what);
  if (number)
    (*number)++;
}

INLINE int pass(__u32 why) {
  count(why);
  return XDP_PASS;
}

INLINE int is_data_path(__u8 operation) {
  return operation == WRITE || operation == READ || (operation >= READ_REPLY && operation <= REPEATABLE_WRITE) ||
         (operation >= INVALIDATE && operation <= RECALLED);
}

// A write that its client may send again: which client, its life, the tag.
INLINE int is_write_id(void *frame, __u32 at) {
  return WORD(at + 4) != 0;
}

// The same, with the oldest write that its client has open.
INLINE int is_origin(void *frame, __u32 at) {
  return is_write_id(frame, at) && BE64(LONG(at + 16)) <= BE64(LONG(at + 8));
}

// The length of a sound body, with the value behind a page; 0 where no sound body begins so.
INLINE __u32 body_length(void *frame, void *end) {
  __u8 operation = BYTE(OPERATION);
  switch (operation) {
  case READ:
    return 16;
  case WRITE:
    return 16 + PAGE + VALUE;
  case ACKNOWLEDGE:
  case VALIDATE:
    return 20;
  case INVALIDATE:
  case FETCHED:
    return 20 + PAGE + VALUE;
  case FETCH:
    return 12;
  }
  if (frame + BODY + 9 > end)
    return 0;
  if (operation == READ_REPLY || operation == WRITE_REPLY) {
    __u8 status = BYTE(BODY + 8);
    if (status > REFUSAL_MAX)
      return 0;
    return operation == READ_REPLY && status == 0 ? 9 + PAGE + VALUE : 9;
  }
  if (frame + BODY + 28 > end)
    return 0;
  if (operation == FETCH_AFTER)
    return is_write_id(frame, BODY + 12) ? 28 : 0;
  if (frame + BODY + 33 > end)
    return 0;
  if (operation == REPEATABLE_WRITE) {
    int is_session = WORD(BODY + 16) != 0 && BE64(LONG(BODY + 20)) <= BE64(LONG(BODY)) && BYTE(BODY + 32) <= 1;
    return is_session ? 33 + PAGE + VALUE : 0;
  }
  if (operation == RECALLED)
    return is_write_id(frame, BODY + 12) && BYTE(BODY + 28) <= 1 ? 33 : 0;
  if (frame + BODY + 41 > end)
    return 0;
  if (operation == RECALL)
    return is_origin(frame, BODY + 12) && BYTE(BODY + 36) <= 1 ? 41 : 0;
  if (frame + BODY + 44 > end)
    return 0;
  if (operation == REMEMBERED)
    return is_origin(frame, BODY + 12) ? 44 : 0;
  return operation == REPEATABLE_INVALIDATE && is_origin(frame, BODY + 20) ? 44 + PAGE + VALUE : 0;
}

// A sum in ones' complement (RFC 1071).
INLINE __u16 folded(__u32 sum) {
  sum = (sum & 0xffff) + (sum >> 16);
  return (sum & 0xffff) + (sum >> 16);
}

INLINE __u32 halves(void *frame, __u32 from, __u32 to) {
  __u32 sum = 0;
#pragma unroll
  for (__u32 at = from; at < to; at += 2)
    sum += HALF(at);
  return sum;
}

// What the switch changes below the checksum of UDP: addresses, ports, and from the target to the vSSD.
INLINE __u16 changeable(void *frame) {
  return folded(halves(frame, IP_SOURCE, UDP_LENGTH) + halves(frame, TARGET, TARGET + 10));
}

INLINE void readdress(void *frame, struct neighbour *to) {
  WORD(TARGET_STATION) = to->station;
  HALF(TARGET_STATION + 4) = to->station_end;
  WORD(SOURCE_STATION) = own_station;
  HALF(SOURCE_STATION + 4) = own_station_end;
  WORD(IP_SOURCE) = own_address;
  WORD(IP_TARGET) = to->address;
  BYTE(IP_HOPS) = HOPS;
  HALF(IP_CHECK) = 0;
  HALF(IP_CHECK) = ~folded(halves(frame, IP, UDP));
  HALF(UDP_SOURCE) = own_port;
  HALF(UDP_TARGET) = to->port;
}

// Makes a sound packet one to its node, or to the server that a read is redirected to.
INLINE void forward(void *frame, struct redirect *redirect, struct neighbour *to) {
  __u16 before = changeable(frame), check = HALF(UDP_CHECK);
  if (redirect) {
    WORD(TARGET) = redirect->target;
    WORD(VSSD) = redirect->vssd;
  }
  readdress(frame, to);
  // RFC 1624. Zero means that there is none.
  __u16 sum = ~folded((__u16)~check + (__u16)~before + changeable(frame));
  HALF(UDP_CHECK) = !check ? 0 : sum ? sum : 0xffff;
}

// Whether a frame has exactly one IPv4 packet with one datagram, whose header is not damaged.
INLINE int is_whole(struct xdp_md *context, void *frame) {
  __u32 length = BE16(HALF(IP_LENGTH));
  return BYTE(IP) == VERSION_AND_LENGTH && !(HALF(IP_FRAGMENT) & BE16(MORE_OR_OFFSET)) &&
         length == BE16(HALF(UDP_LENGTH)) + (UDP - IP) && buffer_length(context) >= IP + length &&
         folded(halves(frame, IP, UDP)) == 0xffff;
}

// Whether the checksum is still what a sender leaves for a card to complete: that of the addresses alone.
INLINE int is_unsummed(void *frame) {
  __u32 sum = halves(frame, IP_SOURCE, UDP) + BE16(PROTOCOL_UDP) + HALF(UDP_LENGTH);
  return HALF(UDP_CHECK) == folded(sum);
}

SEC("xdp.frags")
int rack_switch(struct xdp_md *context) {
  void *frame = (void *)(long)context->data;
  void *end = (void *)(long)context->data_end;
  if (frame + BODY > end || HALF(ETHER_TYPE) != BE16(IPV4))
    return XDP_PASS;
  if (BYTE(IP_PROTOCOL) != PROTOCOL_UDP || WORD(IP_TARGET) != own_address || HALF(UDP_TARGET) != own_port)
    return XDP_PASS;
  if (WORD(TARGET_STATION) != own_station || HALF(TARGET_STATION + 4) != own_station_end)
    return XDP_PASS;
  if (!is_whole(context, frame) || LONG(TAG) != rack_tag || WORD(MAGIC) != BE32(MAGIC_RBX1))
    return pass(UNSOUND);
  if (!is_data_path(BYTE(OPERATION)))
    return pass(CONTROL);
  __u32 body = body_length(frame, end);
  if (!body || BE16(HALF(UDP_LENGTH)) != BODY - UDP + body)
    return pass(UNSOUND);
  if (is_unsummed(frame))
    return pass(UNSUMMED);
  __u32 vssd = BE32(WORD(VSSD)), target = BE32(WORD(TARGET));
  struct redirect *redirect = 0;
  if (BYTE(OPERATION) == READ && target < inside)
    redirect = map_lookup(&redirects, &vssd);
  if (redirect)
    target = BE32(redirect->target);
  struct neighbour *to = map_lookup(&nodes, &target);
  if (!to)
    return pass(UNKNOWN);
  count(FORWARDED);
  if (redirect)
    count(REDIRECTED);
  forward(frame, redirect, to);
  return XDP_TX;
}

// No function of the kernel that is called is for GPL programs only.
char terms[] SEC("license") = "Apache-2.0";
