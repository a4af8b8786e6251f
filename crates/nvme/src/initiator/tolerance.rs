//! Deviations of controllers in use, and how a host handles them.

/// Something that a controller does otherwise than the specification or than most controllers, and
/// that harms no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Tolerance {
    /// SQHD of a completion cannot be: completions alone free entries of the queue.
    OddHead,
    /// C2HData report success on a queue with flow control. SPDK does so by default
    /// (`c2h_success`).
    FlagWithFlowControl,
    /// The last data of a read have no LAST: the response ends the command.
    LastMissing,
    /// MAXH2CDATA is below 4,096 or no multiple of 4: it is rounded down to one.
    OddDataMax,
    /// KAS is 0: no Keep Alive is sent. A discovery controller may have none (Base 2.0, 3.1.2.3).
    NoKeepAlive,
    /// CNTLID of Identify is not that of Connect, where nothing depends on it: it is 0, or the
    /// controller is of discovery.
    OtherControllerId,
    /// SGLS claims no SGLs, without which there is no NVMe/TCP.
    NoSgls,
    /// IOCCSZ, IORCSZ or ICDOFF leave no room for data in capsules: all data are sent apart.
    NoCapsuleData,
    /// Set Features 0Bh is refused: the events that come are those of the controller's choice.
    NoEventMask,
    /// CC.SHN is refused: the connections are closed without it.
    NoShutdown,
}

impl std::fmt::Display for Tolerance {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Tolerance::OddHead => "a completion's SQHD cannot be; it is passed over",
            Tolerance::FlagWithFlowControl => "C2HData say SUCCESS though flow control is on",
            Tolerance::LastMissing => "the last C2HData of a read have no LAST",
            Tolerance::OddDataMax => "MAXH2CDATA is below 4096 or no multiple of 4",
            Tolerance::NoKeepAlive => "it has no keep-alive (KAS 0); none is sent",
            Tolerance::OtherControllerId => "Identify has another CNTLID than Connect",
            Tolerance::NoSgls => "SGLS claims no SGLs",
            Tolerance::NoCapsuleData => "IOCCSZ, IORCSZ or ICDOFF leave no room for data in capsules",
            Tolerance::NoEventMask => "it refuses Set Features 0Bh (asynchronous events)",
            Tolerance::NoShutdown => "it refuses CC.SHN",
        })
    }
}
