//! A store's flash with anything in it: a restart ends, and the store it finds is read and changed.
//! Checksums are right where the input says so, as of one who knows the seal.
#![no_main]

use base::{Program, Span, Time};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use scalio::layout::{Seal, decode_head, decode_record, decode_segment, encode_content, scan, zone_kind};
use scalio::*;
use std::collections::VecDeque;
use std::sync::Arc;

const SEAL: Seal = Seal(0);
const CONFIG: ServerConfig = ServerConfig {
    device: 0,
    devices: 1,
    blocks: 3,
    protocol: Protocol::Linearizable,
    group_updates: 4,
    group_wait: Span::us(1),
    groups_max: 2,
    zones: 12,
    zone_sectors: 16,
    reserve_zones: 4,
    compact_below: 6,
    volatile_cache: true,
    value_bytes_max: 1_024,
    start_second: 10,
    hand_over: true,
};
const CLIENT: ClientConfig = ClientConfig {
    client: ClientId(1),
    blocks: CONFIG.blocks,
    devices: 1,
    protocol: CONFIG.protocol,
    lease: Span::ms(1),
    retry_wait: Span::us(1),
    attempts_max: 3,
    share_waits: false,
    reply_timeout: Span::ms(1),
    sends_max: 2,
    touch: true,
    start_second: CONFIG.start_second,
};

/// The bytes of an input, one after another; zeros behind its end.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn is_over(&self) -> bool {
        self.0.is_empty()
    }
    fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }
    fn word(&mut self) -> u64 {
        u64::from(self.byte()) << 8 | u64::from(self.byte())
    }
    /// Mostly a small number, else one of the greatest of so many bits.
    fn number(&mut self, bits: u32) -> u64 {
        match self.byte() {
            high @ 0xf0.. => (u64::MAX >> (64 - bits)) - u64::from(!high),
            low => low.into(),
        }
    }
    fn key(&mut self) -> Key {
        let letter = b'a' + self.byte() % 8;
        Key::new(&[letter; KEY_BYTES_MAX][..1 + usize::from(letter) % KEY_BYTES_MAX]).expect("it is short")
    }
    fn item(&mut self) -> Item {
        let flags = self.byte();
        let place = if flags & 2 == 0 { self.word() } else { self.number(40) };
        Item {
            key: self.key(),
            record: RecordPlace(place),
            sequence: Sequence(self.number(40)),
            value_bytes: listed_bytes([1, 20][usize::from(flags >> 2 & 1)] * u32::from(self.byte())),
            expiry: Expiry(self.byte().into()),
            is_fresh: flags & 1 != 0,
        }
    }
    fn segment(&mut self) -> Content<Bytes> {
        let mut items: Vec<Item> = (0..self.byte() % 40).map(|_| self.item()).collect();
        items.sort_by_key(|item| item.key);
        items.dedup_by_key(|item| item.key);
        let (block, epoch) = (self.number(32) as u32, self.number(32) as u32);
        let (sequence, settled) = (Sequence(self.number(40)), Sequence(self.number(40)));
        Content::Segment(Arc::new(Segment { block, epoch, sequence, settled, items }))
    }
    fn record(&mut self) -> Record<Bytes> {
        // A store may be opened with a lower limit than what is in it.
        let value = Bytes::from(vec![7; 20 * usize::from(self.byte())]);
        Record { key: self.key(), sequence: Sequence(self.number(40)), expiry: Expiry(self.byte().into()), value }
    }
    fn page(&mut self) -> Content<Bytes> {
        let records = (0..self.byte() % 5).map(|_| self.record()).collect();
        Content::Page(Arc::new(Page { epoch: self.number(32) as u32, records }))
    }
}

struct Device(Vec<u8>);

impl Device {
    fn of(input: &mut Input) -> Device {
        let mut bytes = vec![0; (CONFIG.zones * CONFIG.zone_sectors * SECTOR_BYTES) as usize];
        while !input.is_over() {
            let (what, sector) = (input.byte(), usize::from(input.byte()));
            let at = sector % (bytes.len() / SECTOR_BYTES as usize) * SECTOR_BYTES as usize;
            let new = match what % 4 {
                0 => encode_content(&input.segment(), SEAL),
                1 => encode_content(&input.page(), SEAL),
                2 => {
                    let count = usize::from(input.byte()).min(input.0.len());
                    input.0.split_off(..count).unwrap_or(&[]).to_vec()
                }
                // One byte of a sector is another one; a bucket's checksum is right all the same.
                _ => {
                    let mut sector = bytes[at..at + SECTOR_BYTES as usize].to_vec();
                    sector[8 + input.word() as usize % 504] ^= input.byte();
                    let sum = crc32c::crc32c_append(SEAL.0, &sector[8..]);
                    sector[4..8].copy_from_slice(&sum.to_le_bytes());
                    sector
                }
            };
            let end = bytes.len().min(at + new.len());
            bytes[at..end].copy_from_slice(&new[..end - at]);
        }
        Device(bytes)
    }

    fn at(&mut self, extent: Extent) -> Option<&mut [u8]> {
        let at = usize::try_from(extent.sector.checked_mul(SECTOR_BYTES.into())?).ok()?;
        self.0.get_mut(at..at.checked_add(extent.sectors as usize * SECTOR_BYTES as usize)?)
    }

    fn answer(&mut self, operation: &FlashOperation<Bytes>) -> FlashAnswer<Bytes> {
        let Some(extent) = operation.extent() else { return FlashAnswer::Done };
        let Some(bytes) = self.at(extent) else { return FlashAnswer::Failed };
        match operation {
            FlashOperation::ReadSegment { .. } => FlashAnswer::Segment(decode_segment(bytes, SEAL).map(Arc::new)),
            FlashOperation::ReadRecord { item } => {
                FlashAnswer::Record(decode_record(bytes.get(item.record.within()..).unwrap_or(&[]), SEAL))
            }
            FlashOperation::ReadHead { item } => {
                FlashAnswer::Head(decode_head(item, bytes.get(item.record.within()..).unwrap_or(&[])))
            }
            FlashOperation::ReadKind { .. } => FlashAnswer::Kind(zone_kind(bytes, SEAL)),
            FlashOperation::Scan { .. } => FlashAnswer::Scanned(scan(extent, bytes, SEAL).found),
            FlashOperation::List { .. } => FlashAnswer::Listed(scan(extent, bytes, SEAL).found),
            FlashOperation::Write { content, .. } => {
                bytes.copy_from_slice(&encode_content(content, SEAL));
                FlashAnswer::Done
            }
            FlashOperation::Trim { .. } => {
                bytes.fill(0);
                FlashAnswer::Done
            }
            FlashOperation::Flush => FlashAnswer::Done,
        }
    }
}

struct Store {
    now: Time,
    device: Device,
    index: Index<Bytes>,
    server: Server<Bytes>,
    client: Client<Bytes>,
    from_server: VecDeque<ServerOut<Bytes>>,
    from_client: VecDeque<ClientOut<Bytes>>,
    done: u32,
}

impl Store {
    fn recover(device: Device) -> Store {
        let mut out = Vec::new();
        let server = Server::recover(CONFIG, &mut out);
        Store {
            now: Time::ZERO,
            device,
            index: Index::new(CONFIG.blocks, 2),
            server,
            client: Client::new(CLIENT),
            from_server: out.into(),
            from_client: VecDeque::new(),
            done: 0,
        }
    }

    /// Carries out what both want; false where they have not come to an end.
    fn carry_out(&mut self) -> bool {
        for _ in 0..20_000 {
            let (mut from_server, mut from_client) = (Vec::new(), Vec::new());
            match (self.from_server.pop_front(), self.from_client.pop_front()) {
                (None, None) => return true,
                (server, client) => {
                    let input = server.and_then(|out| self.of_server(out, &mut from_client));
                    input.into_iter().for_each(|input| self.server.on(self.now, input, &mut from_server));
                    client.into_iter().for_each(|out| self.of_client(out, &mut from_server, &mut from_client));
                }
            }
            self.from_server.extend(from_server);
            self.from_client.extend(from_client);
        }
        false
    }

    fn of_server(&mut self, out: ServerOut<Bytes>, from_client: &mut Vec<ClientOut<Bytes>>) -> Option<ServerIn<Bytes>> {
        match out {
            ServerOut::Memory { request, block, operation } => {
                Some(ServerIn::Memory { request, answer: self.index.carry_out(block, operation) })
            }
            ServerOut::Flash { request, operation } => {
                Some(ServerIn::Flash { request, answer: self.device.answer(&operation) })
            }
            ServerOut::Reply(reply) => {
                self.client.on(self.now, ClientIn::Reply(reply), from_client);
                None
            }
        }
    }

    fn of_client(
        &mut self,
        out: ClientOut<Bytes>,
        from_server: &mut Vec<ServerOut<Bytes>>,
        from_client: &mut Vec<ClientOut<Bytes>>,
    ) {
        match out {
            ClientOut::Memory { request, block, operation } => {
                let answer = self.index.carry_out(block, operation);
                if let Some(request) = request {
                    self.client.on(self.now, ClientIn::Memory { request, answer }, from_client);
                }
            }
            ClientOut::Flash { request, operation, .. } => {
                let answer = self.device.answer(&operation);
                self.client.on(self.now, ClientIn::Flash { request, answer }, from_client);
            }
            ClientOut::Send { request, .. } => self.server.on(self.now, ServerIn::Request(request), from_server),
            ClientOut::Done { .. } => self.done += 1,
        }
    }

    fn ask(&mut self, ticket: u64, operation: Operation<Bytes>) {
        let (before, mut out) = (self.done, Vec::new());
        self.client.on(self.now, ClientIn::Issue { ticket, operation }, &mut out);
        self.from_client.extend(out);
        for _ in 0..10_000 {
            assert!(self.carry_out(), "nothing ends");
            if self.done > before {
                return;
            }
            self.now += Span::us(1);
            let (mut from_server, mut from_client) = (Vec::new(), Vec::new());
            self.server.on_wakeup(self.now, &mut from_server);
            self.client.on_wakeup(self.now, &mut from_client);
            self.from_server.extend(from_server);
            self.from_client.extend(from_client);
        }
        panic!("a request has no end");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut store = Store::recover(Device::of(&mut Input(bytes)));
    assert!(store.carry_out(), "the restart goes on for ever");
    assert!(store.server.recovered().is_some(), "the restart waits for nothing");
    if store.server.recovered() == Some(false) {
        return;
    }
    let mut input = Input(b"\0\x01\x02\x03\x04\x05\x06\x07");
    for ticket in 0..8 {
        let key = input.key();
        store.ask(4 * ticket, Operation::Get { key });
        let value = Bytes::from(vec![1; 16 << ticket.min(5)]);
        let body = RequestBody::Put { key, value, time_to_live: None, condition: Condition::Always };
        store.ask(4 * ticket + 1, Operation::Update(body));
        store.ask(4 * ticket + 2, Operation::Get { key });
        if ticket % 2 == 0 {
            store.ask(4 * ticket + 3, Operation::Update(RequestBody::Delete { key }));
        }
    }
});
