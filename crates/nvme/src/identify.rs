//! Data of Identify (NVM Express Base 2.0, 5.17.2): 4,096 bytes each.

mod controller;
mod lists;
mod namespace;

pub use controller::{
    AnaCapabilities, ControllerKind, FusedCommands, IdentifyController, LogAttributes, NvmCommands, NvmController,
    SglSupport,
};
pub use lists::{ActiveNamespaces, NamespaceDescriptors, NamespaceName};
pub use namespace::{IdentifyNamespace, LbaFormat, NamespaceSummary};

use crate::layout::codes;

/// Bytes of every structure.
pub const IDENTIFY_BYTES: usize = 4096;

codes! {
    /// Which structure (CNS, Figure 273).
    pub enum IdentifyId: u8 {
        /// [`IdentifyNamespace`] of an active namespace.
        Namespace = 0x00,
        /// [`IdentifyController`].
        Controller = 0x01,
        /// [`ActiveNamespaces`] above the one in the command.
        ActiveNamespaces = 0x02,
        /// [`NamespaceDescriptors`].
        NamespaceDescriptors = 0x03,
        /// Namespace of a command set: zeros for plain NVM.
        CommandSetNamespace = 0x05,
        /// [`NvmController`], of the NVM command set.
        CommandSetController = 0x06,
        /// [`ActiveNamespaces`] of a command set.
        CommandSetActiveNamespaces = 0x07,
        /// [`NamespaceSummary`]: properties of all command sets.
        NamespaceSummary = 0x08,
        /// Allocated namespaces, active or not.
        AllocatedNamespaces = 0x10,
        /// As 00h, of an allocated namespace.
        AllocatedNamespace = 0x11,
        /// Combinations of command sets: 512 vectors of 64 bits.
        CommandSets = 0x1c,
    }
}

#[cfg(test)]
mod tests;
