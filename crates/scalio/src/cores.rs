//! The cores of the box: one for control, then those of the network, then those of the drives.

/// Assigns clients and devices to cores, each in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreMap {
    /// Cores that receive requests and send answers; at least one.
    pub network: u32,
    /// Cores that drive devices; at least one.
    pub flash: u32,
}

impl CoreMap {
    /// The core that has nothing to do with requests.
    pub const CONTROL: u32 = 0;

    /// The core that serves a client's requests.
    pub fn network(&self, client: u32) -> u32 {
        1 + client % self.network
    }

    /// The core that serves a device.
    pub fn flash(&self, device: u32) -> u32 {
        1 + self.network + device % self.flash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_and_devices_take_turns_and_share_no_core() {
        let map = CoreMap { network: 2, flash: 3 };
        assert_eq!([0, 1, 2, 3].map(|client| map.network(client)), [1, 2, 1, 2]);
        assert_eq!([0, 1, 2, 3].map(|device| map.flash(device)), [3, 4, 5, 3]);
    }
}
