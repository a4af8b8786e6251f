//! Placement of virtual drives: which of them are replicas of each other, on which server, drive
//! and channels each is, and where a lost replica finds room.

use crate::id::VssdId;
use std::collections::BTreeSet;
use std::ops::Range;

/// Replicas of a volume within the rack; a third one may be in another rack.
const IN_RACK: u32 = 2;

/// Configuration of a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacementConfig {
    /// Servers of the rack.
    pub servers: u32,
    /// Drives of a server.
    pub drives: u32,
    /// Virtual drives of a drive.
    pub vssds: u32,
    /// Virtual drives that share their channels; 1: none.
    pub group: u32,
    /// Channels of such a group.
    pub channels: u32,
    /// Whether each volume has a replica in another rack, too.
    pub is_remote: bool,
}

/// Place of a virtual drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VssdPlace {
    /// The server; those of the other rack count on behind those of this one.
    pub server: usize,
    /// The drive of the server.
    pub drive: usize,
    /// Among the virtual drives of its drive.
    pub index: u32,
    /// Its number.
    pub id: VssdId,
}

/// The places of all virtual drives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    config: PlacementConfig,
    remote: u32,
    volumes: Vec<Vec<VssdPlace>>,
}

impl Placement {
    /// Places replicas server by server and round after round: two in a row are on different
    /// servers. Servers take turns at having the first replica of a volume, which serves reads.
    pub fn new(config: PlacementConfig) -> Placement {
        let per_server = config.drives * config.vssds;
        let volumes = config.servers * per_server / IN_RACK;
        let remote = if config.is_remote { volumes.div_ceil(per_server) } else { 0 };
        let place = |number: u32, server: u32, round: u32| VssdPlace {
            server: server as usize,
            drive: (round / config.vssds) as usize,
            index: round % config.vssds,
            id: VssdId(number),
        };
        let local = |number: u32| place(number, number % config.servers, number / config.servers);
        let far = |volume: u32| place(volumes * IN_RACK + volume, config.servers + volume % remote, volume / remote);
        let replicas = |volume: u32| {
            let mut pair = vec![local(IN_RACK * volume), local(IN_RACK * volume + 1)];
            let half = (config.servers / IN_RACK).max(1);
            if (volume + volume / half) % 2 == 1 {
                pair.swap(0, 1);
            }
            pair.extend((remote > 0).then(|| far(volume)));
            pair
        };
        Placement { config, remote, volumes: (0..volumes).map(replicas).collect() }
    }

    /// Servers of the other rack.
    pub fn remote_servers(&self) -> u32 {
        self.remote
    }
    /// All servers.
    pub fn servers(&self) -> usize {
        (self.config.servers + self.remote) as usize
    }
    /// Whether a server is in the other rack.
    pub fn is_remote(&self, server: usize) -> bool {
        server >= self.config.servers as usize
    }
    /// The replicas of each volume, by rank; those of this rack first.
    pub fn volumes(&self) -> &[Vec<VssdPlace>] {
        &self.volumes
    }
    /// All virtual drives.
    pub fn vssds(&self) -> impl Iterator<Item = &VssdPlace> {
        self.volumes.iter().flatten()
    }
    /// The virtual drives of a server, each with its volume.
    pub fn of_server(&self, server: usize) -> impl Iterator<Item = (&VssdPlace, &[VssdPlace])> {
        let pairs = self.volumes.iter().flat_map(|volume| volume.iter().map(move |place| (place, &volume[..])));
        pairs.filter(move |(place, _)| place.server == server)
    }
    /// The channel group of a virtual drive within its drive.
    pub fn group_of(&self, place: &VssdPlace) -> u32 {
        place.index / self.config.group
    }
    /// The channels of a virtual drive.
    pub fn channels_of(&self, place: &VssdPlace) -> Range<u32> {
        let first = self.group_of(place) * self.config.channels;
        first..first + self.config.channels
    }
    /// The share of each die's blocks that is its own; `None` for a drive with channels of its own.
    pub fn share_of(&self, place: &VssdPlace, blocks_per_die: u32) -> Option<Range<u32>> {
        let own = blocks_per_die / self.config.group;
        let member = place.index % self.config.group;
        (self.config.group > 1).then(|| member * own..(member + 1) * own)
    }
    /// The number of lost replicas that a server has room for: each takes whole channels of a drive
    /// of `channels` channels.
    pub fn room(&self, server: usize, channels: u32) -> u32 {
        let of_drive = |drive: usize| {
            let places = self.of_server(server).filter(|(place, _)| place.drive == drive);
            let groups: BTreeSet<u32> = places.map(|(place, _)| self.group_of(place)).collect();
            channels.saturating_sub(groups.len() as u32 * self.config.channels) / self.config.channels
        };
        (0..self.config.drives as usize).map(of_drive).sum()
    }
}

/// Finds room for a lost replica: the first drive with `wanted` unused channels, and the first of
/// these. `unused` lists the unused channels of each drive.
pub fn first_fit(unused: impl IntoIterator<Item = Vec<u32>>, wanted: u32) -> Option<(usize, Vec<u32>)> {
    let mut drives = unused.into_iter().enumerate();
    let (drive, mut channels) = drives.find(|(_, channels)| channels.len() >= wanted as usize)?;
    channels.truncate(wanted as usize);
    Some((drive, channels))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const RACK: PlacementConfig =
        PlacementConfig { servers: 4, drives: 2, vssds: 4, group: 1, channels: 2, is_remote: false };

    #[test]
    fn replicas_of_a_volume_are_on_different_servers() {
        for is_remote in [false, true] {
            let placement = Placement::new(PlacementConfig { is_remote, ..RACK });
            assert_eq!(placement.volumes().len(), 16);
            for volume in placement.volumes() {
                let servers: BTreeSet<usize> = volume.iter().map(|place| place.server).collect();
                assert_eq!(servers.len(), if is_remote { 3 } else { 2 });
                assert_eq!(volume.iter().filter(|place| placement.is_remote(place.server)).count(), volume.len() - 2);
            }
        }
    }

    #[test]
    fn servers_take_turns_at_serving_reads() {
        let placement = Placement::new(RACK);
        let mut first = BTreeMap::<usize, u32>::new();
        placement.volumes().iter().for_each(|volume| *first.entry(volume[0].server).or_default() += 1);
        assert_eq!(first, BTreeMap::from([(0, 4), (1, 4), (2, 4), (3, 4)]));
    }

    #[test]
    fn each_place_is_taken_once_and_each_number_given_once() {
        let placement = Placement::new(PlacementConfig { is_remote: true, ..RACK });
        let places: BTreeSet<_> = placement.vssds().map(|place| (place.server, place.drive, place.index)).collect();
        let numbers: BTreeSet<_> = placement.vssds().map(|place| place.id).collect();
        assert_eq!((places.len(), numbers.len(), placement.vssds().count()), (48, 48, 48));
        assert_eq!(placement.servers(), 6);
    }

    #[test]
    fn members_of_a_group_share_channels_and_divide_blocks() {
        let placement = Placement::new(PlacementConfig { group: 2, channels: 4, ..RACK });
        let mut of_drive: Vec<_> =
            placement.of_server(1).map(|(place, _)| *place).filter(|place| place.drive == 0).collect();
        of_drive.sort_by_key(|place| place.index);
        let channels: Vec<_> = of_drive.iter().map(|place| placement.channels_of(place)).collect();
        assert_eq!(channels, [0..4, 0..4, 4..8, 4..8]);
        let shares: Vec<_> = of_drive.iter().map(|place| placement.share_of(place, 100)).collect();
        assert_eq!(shares, [Some(0..50), Some(50..100), Some(0..50), Some(50..100)]);
        assert_eq!(Placement::new(RACK).share_of(&of_drive[0], 100), None);
    }

    #[test]
    fn a_server_has_room_on_channels_that_nobody_uses() {
        let placement = Placement::new(RACK);
        // Four virtual drives of two channels on each of two drives.
        assert_eq!([8, 9, 10, 13].map(|channels| placement.room(0, channels)), [0, 0, 2, 4]);
    }

    #[test]
    fn a_lost_replica_takes_the_first_channels_of_the_first_drive_with_room() {
        let unused = || [vec![7], vec![3, 4], vec![0, 1, 2]];
        assert_eq!(first_fit(unused(), 1), Some((0, vec![7])));
        assert_eq!(first_fit(unused(), 2), Some((1, vec![3, 4])));
        assert_eq!(first_fit(unused(), 3), Some((2, vec![0, 1, 2])));
        assert_eq!(first_fit(unused(), 4), None);
    }
}
