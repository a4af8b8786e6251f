//! Every structure that is read from a peer: what is read is written and read again as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nvme::identify::{ActiveNamespaces, IdentifyController, IdentifyNamespace, NamespaceDescriptors, NamespaceSummary};
use nvme::log::{AnaLog, ChangedNamespaces, CommandEffects, DiscoveryEntry, DiscoveryHead, ErrorEntry, Health};
use nvme::range::{CopyFormat, CopyRange, DatasetRange};
use nvme::reservation::{AcquireKeys, ExtendedReport, RegisterKeys};
use nvme::{Command, ConnectData, Cqe, QueueKind, Sgl, Sqe};

macro_rules! comes_back {
    ($bytes:expr, $($kind:ty)*) => {$(
        if let Ok(value) = <$kind>::decode($bytes) {
            assert_eq!(<$kind>::decode(&value.encode()), Ok(value));
        }
    )*};
}

fuzz_target!(|bytes: &[u8]| {
    comes_back!(bytes, ConnectData IdentifyController IdentifyNamespace NamespaceSummary ActiveNamespaces
        AnaLog ChangedNamespaces DiscoveryHead DiscoveryEntry ErrorEntry Health ExtendedReport RegisterKeys AcquireKeys Cqe);
    let _ = (CommandEffects::decode(bytes), NamespaceDescriptors::decode(bytes));
    let _ = DatasetRange::view(bytes, bytes.len() / 16);
    for format in CopyFormat::ALL {
        if let Ok(ranges) = CopyRange::list(bytes, bytes.len() / format.bytes(), *format) {
            ranges.for_each(drop);
        }
    }
    if let Ok(entry) = Sqe::view(bytes) {
        assert_eq!(Sgl::decode(&entry.sgl().encode()), entry.sgl());
        for kind in [QueueKind::Admin, QueueKind::Io] {
            if let Ok(command) = Command::decode(entry, kind) {
                assert_eq!(Command::decode(&command.encode(), kind), Ok(command));
            }
        }
    }
});
