//! A disk of a target, as a host sees it, and the discovery log.

use crate::host::{Completed, Host, HostError, Proof};
use nvme::attack::Capacity;
use nvme::identify::{
    ActiveNamespaces, IDENTIFY_BYTES, IdentifyController, IdentifyId, IdentifyNamespace, NamespaceDescriptors,
    NamespaceName,
};
use nvme::initiator::{InitiatorConfig, Payload, Ticket};
use nvme::log::{DiscoveryEntry, DiscoveryHead, LogId};
use nvme::vendor::{MultiCastTarget, TARGETS_MAX, VendorCommand};
use nvme::{Access, AccessFlags, Admin, Body, CodecError, GetLogPage, Identify, Io, Nqn};

/// A range of blocks to transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First block.
    pub start: u64,
    /// Blocks: 1 to 65,536.
    pub blocks: u32,
}

impl Extent {
    /// The range as in a command.
    fn access(self, flags: AccessFlags) -> Access {
        Access { start: self.start, blocks_minus_one: (self.blocks.clamp(1, 1 << 16) - 1) as u16, flags }
    }
}

/// A namespace of a connected controller.
pub struct RemoteDisk {
    host: Host,
    namespace: u32,
    blocks: u64,
    block_shift: u8,
    names: Vec<NamespaceName>,
}

/// Reads one structure of Identify.
fn identify(host: &mut Host, namespace: u32, what: IdentifyId) -> Result<Vec<u8>, HostError> {
    let body = Identify { structure: what.code(), controller: 0, specific_id: 0, command_set: 0 };
    let completed =
        host.call(0, namespace, Body::Admin(Admin::Identify(body)), Payload::ToHost(IDENTIFY_BYTES as u32))?;
    expect(&completed, "identify")?;
    Ok(completed.data)
}

fn expect(completed: &Completed, what: &'static str) -> Result<(), HostError> {
    match completed.status {
        status if status.is_success() => Ok(()),
        status => Err(HostError::Command { what, status }),
    }
}

fn unreadable(what: &'static str) -> impl Fn(CodecError) -> HostError {
    move |error| HostError::Answer { what, error }
}

/// Returns the active namespaces of a connected controller, rising.
pub fn namespaces(host: &mut Host) -> Result<Vec<u32>, HostError> {
    let page = identify(host, 0, IdentifyId::ActiveNamespaces)?;
    Ok(ActiveNamespaces::decode(&page).map_err(unreadable("the list of namespaces"))?.0)
}

/// Reads the log of the discovery controller at `address`. `config` is a host's; its subsystem and
/// queues are not used.
pub fn discover(address: &str, config: InitiatorConfig, proof: &Proof) -> Result<Vec<DiscoveryEntry>, HostError> {
    /// More than a sane fabric has; a hostile one may claim any number.
    const ENTRIES_MAX: u64 = 1024;
    const ENTRY_BYTES: u64 = 1024;
    // Discovery controllers require no authentication.
    let proof = Proof { credentials: None, tls: proof.tls.clone() };
    // Without a keep-alive timeout the connection is not persistent, and a host gets no events
    // (Base 2.0, 3.1.2.3).
    let unasked = InitiatorConfig { io_queues: 0, keep_alive_ms: 0, event_requests: 0, ..config };
    let config = InitiatorConfig { subsystem: Nqn::discovery(), ..unasked };
    let mut host = Host::connect_with(address, config, &proof)?;
    let page = |host: &mut Host, offset| log_page(host, LogId::Discovery, offset, ENTRY_BYTES as u32);
    let unreadable = unreadable("the discovery log");
    let head = DiscoveryHead::decode(&page(&mut host, 0)?).map_err(&unreadable)?;
    let mut entries = Vec::new();
    for index in 1..=head.entries.min(ENTRIES_MAX) {
        // An entry of an unknown transport or kind is skipped; the others are read.
        match DiscoveryEntry::decode(&page(&mut host, index * ENTRY_BYTES)?) {
            Ok(entry) => entries.push(entry),
            Err(error) => tracing::info!(index, %error, "skipped an entry of the discovery log"),
        }
    }
    host.disconnect()?;
    Ok(entries)
}

fn log_page(host: &mut Host, log: LogId, offset: u64, bytes: u32) -> Result<Vec<u8>, HostError> {
    let body = GetLogPage::part(log.code(), offset, bytes / 4 - 1);
    let completed = host.call(0, 0, Body::Admin(Admin::GetLogPage(body)), Payload::ToHost(bytes))?;
    expect(&completed, "reading a log")?;
    Ok(completed.data)
}

impl RemoteDisk {
    /// Reads the properties of `namespace` of a connected host.
    pub fn open(mut host: Host, namespace: u32) -> Result<RemoteDisk, HostError> {
        let page = identify(&mut host, namespace, IdentifyId::Namespace)?;
        let unreadable = unreadable("the namespace");
        let found = IdentifyNamespace::decode(&page).map_err(&unreadable)?;
        let block_shift = found.format_in_use().map_err(&unreadable)?.block_shift;
        let names = match identify(&mut host, namespace, IdentifyId::NamespaceDescriptors) {
            Ok(page) => NamespaceDescriptors::decode(&page).map_err(&unreadable),
            Err(error @ HostError::Command { .. }) => Err(error),
            Err(error) => return Err(error),
        };
        // A disk without a readable name is a disk all the same.
        let names = names.unwrap_or_else(|error| {
            tracing::info!(namespace, %error, "the names of the namespace cannot be decoded");
            Vec::new()
        });
        Ok(RemoteDisk { host, namespace, blocks: found.size, block_shift, names })
    }

    /// Returns the controller's description of itself.
    pub fn controller(&self) -> Option<&IdentifyController> {
        self.host.initiator().controller()
    }
    /// Returns its description of the namespace.
    pub fn capacity(&self) -> Option<Capacity> {
        let initiator = self.host.initiator();
        let page_min = initiator.capabilities().map_or(0, |known| known.page_min);
        initiator.controller().map(|controller| Capacity::of(controller, page_min))
    }
    /// Returns its unique names.
    pub fn names(&self) -> &[NamespaceName] {
        &self.names
    }
    /// Returns its size in blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }
    /// Bytes of a block.
    pub fn block_bytes(&self) -> u64 {
        1 << self.block_shift
    }
    /// Blocks that one command may transfer.
    pub fn transfer_blocks_max(&self) -> u32 {
        (self.host.initiator().transfer_bytes_max() >> self.block_shift).clamp(1, 1 << 16)
    }
    /// Returns the connection, for other commands than plain transfers.
    pub fn host(&mut self) -> &mut Host {
        &mut self.host
    }

    /// Starts a read on an I/O queue.
    pub fn submit_read(&mut self, queue: u16, extent: Extent) -> Result<Ticket, HostError> {
        let body = Body::Io(Io::Read(extent.access(AccessFlags::empty())));
        let bytes = extent.blocks << self.block_shift;
        self.host.submit(queue, self.namespace, body, Payload::ToHost(bytes))
    }
    /// Starts a write on an I/O queue; `data` are as long as the blocks.
    pub fn submit_write(
        &mut self,
        queue: u16,
        extent: Extent,
        data: Vec<u8>,
        durable: bool,
    ) -> Result<Ticket, HostError> {
        let flags = if durable { AccessFlags::FORCE_UNIT_ACCESS } else { AccessFlags::empty() };
        let body = Body::Io(Io::Write(extent.access(flags)));
        self.host.submit(queue, self.namespace, body, Payload::ToController(data))
    }
    /// Starts a flush on an I/O queue.
    pub fn submit_flush(&mut self, queue: u16) -> Result<Ticket, HostError> {
        self.host.submit(queue, self.namespace, Body::Io(Io::Flush), Payload::None)
    }

    /// Reads blocks.
    pub fn read(&mut self, extent: Extent) -> Result<Vec<u8>, HostError> {
        let ticket = self.submit_read(1, extent)?;
        self.finish(ticket, "the read")
    }
    /// Writes blocks.
    pub fn write(&mut self, extent: Extent, data: Vec<u8>, durable: bool) -> Result<(), HostError> {
        let ticket = self.submit_write(1, extent, data, durable)?;
        self.finish(ticket, "the write").map(drop)
    }
    /// Copies blocks of this disk to other places, each a namespace and its first block; the target
    /// does it by itself. Returns the places that do not hold all of it, if only some do.
    pub fn multi_cast(&mut self, extent: Extent, places: &[(u32, u64)]) -> Result<Vec<usize>, HostError> {
        let access = extent.access(AccessFlags::empty());
        let targets_minus_one = places.len().saturating_sub(1).min(TARGETS_MAX - 1) as u8;
        let command = VendorCommand::MultiCast {
            start: access.start,
            blocks_minus_one: access.blocks_minus_one,
            targets_minus_one,
        };
        let list = places
            .iter()
            .take(TARGETS_MAX)
            .flat_map(|(namespace, start)| MultiCastTarget::new(*namespace, *start).encode());
        let body = Body::Io(Io::Vendor(command.encode()));
        let completed = self.host.call(1, self.namespace, body, Payload::ToController(list.collect()))?;
        match (completed.status.is_success(), completed.result) {
            (false, failed) if failed != 0 && failed.count_ones() < places.len() as u32 => {
                Ok((0..places.len()).filter(|place| failed >> place & 1 == 1).collect())
            }
            _ => expect(&completed, "the multicast").map(|()| Vec::new()),
        }
    }
    /// Adds the words at two bytes of the disk, writes the sum over the second, and returns it.
    pub fn add_write(&mut self, first: u64, second: u64) -> Result<u64, HostError> {
        let body = Body::Io(Io::Vendor(VendorCommand::AddWrite { first, second }.encode()));
        let completed = self.host.call(1, self.namespace, body, Payload::None)?;
        expect(&completed, "the add_write").map(|()| completed.result)
    }
    /// Makes earlier writes durable.
    pub fn flush(&mut self) -> Result<(), HostError> {
        let ticket = self.submit_flush(1)?;
        self.finish(ticket, "the flush").map(drop)
    }

    /// Makes earlier writes to all disks of the subsystem durable.
    pub fn flush_all(&mut self) -> Result<(), HostError> {
        /// The broadcast namespace identifier.
        const ALL: u32 = u32::MAX;
        let completed = self.host.call(1, ALL, Body::Io(Io::Flush), Payload::None)?;
        expect(&completed, "the flush").map(drop)
    }

    fn finish(&mut self, ticket: Ticket, what: &'static str) -> Result<Vec<u8>, HostError> {
        loop {
            let completed = self.host.next_completed()?;
            if completed.ticket == ticket {
                return expect(&completed, what).map(|()| completed.data);
            }
        }
    }

    /// Ends the association in order.
    pub fn disconnect(self) -> Result<(), HostError> {
        self.host.disconnect()
    }
}
