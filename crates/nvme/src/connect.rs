//! Data of Connect (NVM Express Base 2.0, 6.3, Figure 380): 1,024 bytes, always inside the capsule.

use crate::layout::layout;
use crate::{HostId, Nqn};

layout! {
    /// The host, and the subsystem and controller that it connects to.
    pub struct ConnectData [1024] {
        /// Which host.
        host_id: HostId = 0,
        /// The controller; [`ConnectData::DYNAMIC`] lets the subsystem choose.
        controller: u16 = 16,
        /// Which subsystem.
        subsystem: Nqn = 256,
        /// The host's name.
        host: Nqn = 512,
    }
}

impl ConnectData {
    /// The host has no controller yet: the admin queue of the dynamic controller model.
    pub const DYNAMIC: u16 = 0xffff;
    /// Offsets of fields, for a [`ConnectRefusal`](crate::ConnectRefusal).
    pub const OFFSET_CONTROLLER: u16 = 16;
    /// As above.
    pub const OFFSET_SUBSYSTEM: u16 = 256;
    /// As above.
    pub const OFFSET_HOST: u16 = 512;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CodecError;

    fn data() -> ConnectData {
        let host = Nqn::new("nqn.2014-08.org.nvmexpress:uuid:a").unwrap();
        ConnectData { host_id: HostId([7; 16]), controller: 0xfffe, subsystem: Nqn::discovery(), host }
    }

    #[test]
    fn fields_stand_where_figure_380_has_them_and_come_back() {
        let bytes = data().encode();
        assert_eq!((bytes[15], bytes[16], bytes[17], bytes[18]), (7, 0xfe, 0xff, 0));
        assert!(bytes[256..].starts_with(b"nqn.2014-08.org.nvmexpress.discovery\0"));
        assert!(bytes[512..].starts_with(b"nqn.2014-08.org.nvmexpress:uuid:a\0"));
        assert_eq!(ConnectData::decode(&bytes), Ok(data()));
    }

    #[test]
    fn a_host_without_a_name_is_refused_by_field() {
        let mut bytes = data().encode();
        bytes[512] = 0;
        assert!(matches!(ConnectData::decode(&bytes), Err(CodecError::Field { field: "host", got: 0, .. })));
        assert!(matches!(ConnectData::decode(&bytes[..1023]), Err(CodecError::Short { got: 1023, needed: 1024, .. })));
    }
}
