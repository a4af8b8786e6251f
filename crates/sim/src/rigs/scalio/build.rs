//! From a plan to programs, models and what they begin with.

use super::asks::Asks;
use super::fabric::Fabric;
use super::facts::Counts;
use super::faults::Liveness;
use super::flash::{Device, PreloadedStore};
use super::judges::Judges;
use super::keys::Keys;
use super::leed_preload::LeedPreload;
use super::programs::Programs;
use super::server_hardware::ServerHardware;
use super::torn_reads::TornReads;
use super::{ScalioRig, Store, warm};
use crate::rigs::blox::BuildError;
use crate::rigs::seat::Seat;
use crate::slab::Slab;
use base::{Bytes, Seed, Span};
use hardware::ssd::presets::samsung_970_pro_quick;
use hardware::ssd::{QuickConfig, QuickDrive};
use plan::DesignName;
use plan::blox::Flash;
use plan::scalio::fixed::{
    BARE_CAPACITY, CHUNKS_OF_A_CLIENT, COMPACT_BELOW, DITTO_ATTEMPTS, DITTO_BLOCK, DITTO_SAMPLE_BUCKETS, GROUPS,
    LEED_RECORDS, LEED_SEGMENTS, LEED_TOKENS, LeedLog, NO_LEASE, PAGE_RECORDS, READS_OF_A_GET, RESERVE_ZONES,
    ZONES_MIN,
};
use plan::scalio::{Ditto, Options, ProtocolName, Scalio};
use scalio::baseline::{ditto, leed, nvme_of};
use scalio::{
    Client, ClientConfig, ClientId, Extent, Index, LONG_PAGE_SECTORS_MAX, MemoryOperation, PAGE_HEADER_BYTES, Preload,
    Protocol, SECTOR_BYTES, Server, ServerConfig, Token, VALUE_BYTES_MAX, record_bytes,
};

/// The rack of a plan. With `wire_check` every message is encoded and decoded, with `keep_history`
/// every operation kept.
///
/// # Errors
/// When a part refuses its numbers.
pub fn build(plan: &Scalio, seed: Seed, wire_check: bool, keep_history: bool) -> Result<ScalioRig, BuildError> {
    let keys = Keys { count: plan.store.keys, value_bytes: plan.store.value.count() as u32 };
    let blocks = blocks_of(plan);
    let made = match plan.design {
        DesignName::Scalio => made_scalio(plan, &keys, blocks, seed)?,
        DesignName::Leed | DesignName::LeedDitto => made_rival(plan, &keys, blocks, seed)?,
        DesignName::NvmeOfOffload => made_bare(nvme_of::Placement::Adapter),
        _ => made_bare(nvme_of::Placement::Cores(plan.cores.count)),
    };
    let drive = |device| {
        let drive = QuickDrive::new(quick(plan, made.capacity)).map_err(BuildError::of)?;
        Ok(Device::new(device, plan.store.devices, blocks, drive))
    };
    let store = Store {
        keys,
        blocks,
        protocol: plan.options.as_ref().map_or(Protocol::Linearizable, protocol_of),
        devices: (0..plan.store.devices).map(drive).collect::<Result<_, BuildError>>()?,
        preloaded: made.preloaded,
        torn_reads: torn_reads_of(plan, seed, blocks),
        index: made.index,
        pool: made.pool,
    };
    Ok(ScalioRig {
        plan: plan.clone(),
        programs: made.programs,
        hardware: ServerHardware::new(plan),
        fabric: Fabric::of(plan, store.index.as_ref(), wire_check).map(Box::new),
        store,
        in_flight: Slab::new(),
        asks: Asks::new(plan.store.clients),
        state: Liveness::new(plan.store.clients as usize, seed.stream("scalio/crash")),
        judges: Judges::new(plan.check_history || keep_history, keep_history),
        counts: Counts::default(),
        wire_check,
    })
}

/// The paper's drive, or one of the plan's own numbers.
fn quick(plan: &Scalio, capacity: Bytes) -> QuickConfig {
    let own = plan.flash.as_ref().and_then(Flash::whole);
    let named = || QuickConfig { keeps_page: plan.store.keeps_page, ..samsung_970_pro_quick(capacity) };
    own.map_or_else(named, |flash| QuickConfig::of_flash(&flash, capacity))
}

/// Where reads can be torn: nobody reads yet.
fn torn_reads_of(plan: &Scalio, seed: Seed, blocks: u32) -> Option<TornReads> {
    let torn_reads = plan.options.is_some_and(|options| options.torn_reads);
    torn_reads.then(|| TornReads::new(seed.stream("scalio/lines"), blocks))
}

/// What differs between designs.
struct Made {
    programs: Programs,
    preloaded: PreloadedStore,
    index: Option<Index<Token>>,
    pool: Option<ditto::Pool<Token>>,
    capacity: Bytes,
}

fn made_bare(placement: nvme_of::Placement) -> Made {
    let programs = Programs::Bare(Seat::new(nvme_of::Target::new(placement)));
    Made { programs, preloaded: PreloadedStore::Bare, index: None, pool: None, capacity: BARE_CAPACITY }
}

/// Scalio has as many blocks as it takes to cache `cached_keys`, with or without a cache; LEED has
/// as many as are asked for.
fn blocks_of(plan: &Scalio) -> u32 {
    match (&plan.options, &plan.leed) {
        (Some(options), _) => plan.store.cached_keys.div_ceil(options.slots).max(plan.store.devices),
        (None, Some(leed)) => leed.segments * plan.store.devices,
        (None, None) => 1,
    }
}

fn made_scalio(plan: &Scalio, keys: &Keys, blocks: u32, seed: Seed) -> Result<Made, BuildError> {
    let options = plan.options.as_ref().ok_or_else(|| BuildError("a plan of scalio has its options".into()))?;
    let zone_sectors = plan.store.zone_sectors();
    let preload = Preload::new(*keys, blocks, plan.store.devices, zone_sectors, page_records(&plan.store));
    let preload = preload.map_err(BuildError::of)?;
    check_room(plan, &preload)?;
    let slots = if options.cache { options.slots as u8 } else { 0 };
    let mut index = Index::new(blocks, slots);
    for block in 0..blocks {
        if let Some(segment) = preload.pointer(block) {
            index.carry_out(block, MemoryOperation::Publish { segment });
        }
    }
    if options.cache && plan.store.warmed > 0.0 && plan.store.has_short_values() {
        let draws = warm::draws(&plan.io, warmed_places(plan), seed.child("warm"));
        warm::fill_index(&mut index, blocks, keys, &draws);
    }
    let preloaded = PreloadedStore::Scalio(Box::new(preload));
    let mut servers = Vec::new();
    for device in 0..plan.store.devices {
        let mut server = Seat::new(Server::new(server_config(plan, blocks, device, &preloaded)));
        if let PreloadedStore::Scalio(preload) = &preloaded {
            preload.install(device, &mut server);
        }
        servers.push(server);
    }
    let clients = (0..plan.store.clients)
        .map(|client| Seat::new(Client::new(client_config(plan, options, blocks, client))))
        .collect();
    let zones =
        (0..plan.store.devices).map(|device| server_config(plan, blocks, device, &preloaded).zones).max().unwrap_or(0);
    let capacity = Bytes::new(u64::from(zones) * u64::from(zone_sectors) * u64::from(SECTOR_BYTES));
    Ok(Made { programs: Programs::Scalio { clients, servers }, preloaded, index: Some(index), pool: None, capacity })
}

fn warmed_places(plan: &Scalio) -> u64 {
    (f64::from(plan.store.cached_keys) * plan.store.warmed) as u64
}

fn protocol_of(options: &Options) -> Protocol {
    match options.protocol {
        ProtocolName::Linearizable => Protocol::Linearizable,
        ProtocolName::Paper => Protocol::Paper { lease: options.lease.is_some() },
    }
}

fn client_config(plan: &Scalio, options: &Options, blocks: u32, client: u32) -> ClientConfig {
    ClientConfig {
        client: ClientId(client as u16),
        blocks,
        devices: plan.store.devices,
        protocol: protocol_of(options),
        lease: options.lease.unwrap_or(NO_LEASE),
        retry_wait: options.retry,
        attempts_max: READS_OF_A_GET,
        share_waits: options.share_waits,
        reply_timeout: options.timeout,
        sends_max: options.attempts,
        touch: true,
        start_second: 0,
    }
}

/// Records of a page at first: short values as in the paper, longer ones as servers write them.
fn page_records(store: &plan::scalio::Store) -> u32 {
    if store.has_short_values() {
        return PAGE_RECORDS;
    }
    let room = LONG_PAGE_SECTORS_MAX * SECTOR_BYTES - PAGE_HEADER_BYTES;
    (room / record_bytes(store.value.count() as u32)).clamp(1, PAGE_RECORDS)
}

/// Fails where a log of a given size cannot hold what is there at first, and be compacted.
fn check_room(plan: &Scalio, preload: &Preload<Keys>) -> Result<(), BuildError> {
    let Some(size) = plan.store.size else { return Ok(()) };
    let zone = u64::from(plan.store.zone_sectors());
    let used = (0..plan.store.devices).map(|device| preload.sectors_needed(device).div_ceil(zone)).max().unwrap_or(0);
    let zones = size.count() / (zone * u64::from(SECTOR_BYTES));
    let beside = u64::from(RESERVE_ZONES) + ZONES_IN_TRANSIT;
    if used + beside <= zones {
        return Ok(());
    }
    Err(BuildError(format!(
        "store.size: {} keys (`store.keys`) take {used} zones, and compaction {beside}; {size} are {zones} zones",
        plan.store.keys
    )))
}

/// Zones that are being filled, one of each kind.
const ZONES_IN_TRANSIT: u64 = 2;

/// The server of a device, whose log has `store.size`, or room for what is there at first and
/// `store.spare` times as much.
pub fn server_config(plan: &Scalio, blocks: u32, device: u32, preloaded: &PreloadedStore) -> ServerConfig {
    let options = plan.options.expect("a plan of scalio has its options");
    let zone_sectors = plan.store.zone_sectors();
    let compact_below = options.compact_below.unwrap_or(COMPACT_BELOW);
    let used = match preloaded {
        PreloadedStore::Scalio(preload) => preload.sectors_needed(device).div_ceil(u64::from(zone_sectors)),
        PreloadedStore::Leed(_) | PreloadedStore::Bare => 0,
    };
    let spare = (used as f64 * plan.store.spare) as u64 + u64::from(compact_below) + ZONES_MIN;
    let given = plan.store.size.map(|size| size.count() / (u64::from(zone_sectors) * u64::from(SECTOR_BYTES)));
    ServerConfig {
        device,
        devices: plan.store.devices,
        blocks,
        protocol: protocol_of(&options),
        group_updates: if options.batching { options.batch } else { 1 },
        group_wait: if options.batching { options.idle_flush } else { Span::ZERO },
        groups_max: options.groups.unwrap_or(GROUPS),
        zones: given.unwrap_or(used + spare) as u32,
        zone_sectors,
        reserve_zones: RESERVE_ZONES,
        compact_below,
        volatile_cache: options.volatile_cache,
        value_bytes_max: VALUE_BYTES_MAX.max(plan.store.value.count() as u32),
        start_second: 0,
        hand_over: options.hand_over,
    }
}

fn made_rival(plan: &Scalio, keys: &Keys, blocks: u32, seed: Seed) -> Result<Made, BuildError> {
    let options = plan.leed.ok_or_else(|| BuildError("a plan of leed has its numbers".into()))?;
    let devices = plan.store.devices;
    // A record takes a sector; segments of a key or none take one each.
    let each = u64::from(keys.count / devices + keys.count / devices / 8 + 1_024);
    let rows = |used: u64, least: u32| (used as f64 * (1.0 + plan.store.spare)) as u32 + 4 * least;
    let records = log_config(0, rows(each, LEED_RECORDS.compact_below), LEED_RECORDS);
    let segments_used = each.div_ceil(4) + u64::from(options.segments);
    let segments =
        log_config(u64::from(records.extent.sectors), rows(segments_used, LEED_SEGMENTS.compact_below), LEED_SEGMENTS);
    let preload = LeedPreload::new(*keys, blocks, devices, [records.extent.sector, segments.extent.sector]);
    let tokens = leed::Tokens {
        capacity: options.tokens,
        get: LEED_TOKENS.get,
        put: LEED_TOKENS.put,
        delete: LEED_TOKENS.delete,
    };
    let hand_over = options.hand_over;
    let config = |device| leed::ServerConfig { device, devices, blocks, tokens, segments, records, hand_over };
    let mut servers = Vec::new();
    for device in 0..devices {
        let mut server = leed::Server::new(config(device)).map_err(BuildError::of)?;
        for block in (device..blocks).step_by(devices as usize) {
            server.load(block, preload.keys_of(block).collect()).map_err(BuildError::of)?;
        }
        servers.push(Seat::new(server));
    }
    let sectors = segments.extent.sector + u64::from(segments.extent.sectors);
    let capacity = Bytes::new((sectors * u64::from(SECTOR_BYTES)).next_multiple_of(4_096));
    let (programs, pool) = match plan.ditto {
        None => {
            let client = |client| Seat::new(leed::Client::new(ClientId(client as u16), blocks, devices));
            (Programs::Leed { clients: (0..plan.store.clients).map(client).collect(), servers }, None)
        }
        Some(own) => {
            let pool = pool_of(plan, keys, seed);
            (Programs::Ditto { clients: ditto_clients(plan, own, blocks, &pool, seed)?, servers }, Some(pool))
        }
    };
    Ok(Made { programs, preloaded: PreloadedStore::Leed(Box::new(preload)), index: None, pool, capacity })
}

fn log_config(sector: u64, sectors: u32, log: LeedLog) -> leed::LogConfig {
    let LeedLog { chunk_sectors, chunks_at_once, compact_below } = log;
    leed::LogConfig { extent: Extent { sector, sectors }, chunk_sectors, chunks_at_once, compact_below }
}

fn pool_of(plan: &Scalio, keys: &Keys, seed: Seed) -> ditto::Pool<Token> {
    let cached = plan.store.cached_keys;
    let chunks = plan.store.clients * CHUNKS_OF_A_CLIENT;
    let chunk_blocks = (cached / chunks).max(1);
    let geometry = ditto::PoolGeometry {
        // Twice as many slots as objects, so that few buckets are full.
        buckets: (cached * 2).div_ceil(ditto::SLOTS as u32),
        block_bytes: DITTO_BLOCK,
        chunk_blocks,
        chunks: cached.div_ceil(chunk_blocks),
    };
    let mut pool = ditto::Pool::new(geometry);
    if plan.store.warmed > 0.0 {
        let draws = warm::draws(&plan.io, warmed_places(plan), seed.child("warm"));
        warm::fill_pool(&mut pool, keys, &draws);
    }
    pool
}

fn ditto_clients(
    plan: &Scalio,
    own: Ditto,
    blocks: u32,
    pool: &ditto::Pool<Token>,
    seed: Seed,
) -> Result<Vec<Seat<ditto::Client<Token>>>, BuildError> {
    let client = |client: u32| {
        let config = ditto::ClientConfig {
            client: ClientId(client as u16),
            blocks,
            devices: plan.store.devices,
            pool: *pool.geometry(),
            samples: own.samples,
            sample_buckets: DITTO_SAMPLE_BUCKETS,
            attempts_max: DITTO_ATTEMPTS,
            answers_after_fill: false,
        };
        ditto::Client::new(config, seed.stream(&format!("ditto/{client}"))).map(Seat::new).map_err(BuildError::of)
    };
    (0..plan.store.clients).map(client).collect()
}
