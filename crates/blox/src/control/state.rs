//! What a control plane must know again after its process was killed: everything that its servers
//! hold it to. Its host keeps it in a file, and writes it before it sends what came of a change.

use super::group::Group;
use super::{Control, ControlConfig, ControlError, Standing};
use base::{NodeId, Time};
use serde::{Deserialize, Serialize};

/// Servers, groups, and the next free number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlState {
    servers: Vec<ServerState>,
    groups: Vec<Group>,
    next_vssd: u32,
}

/// A server: its room for lost replicas, and its starts in the upper half of its last beat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ServerState {
    node: NodeId,
    room: u32,
    standing: Standing,
    starts: Option<u64>,
}

impl Control {
    /// What has to be kept. Equal states need not be written again.
    pub fn state(&self) -> ControlState {
        let servers = self.servers.iter().map(|server| ServerState {
            node: server.place.node,
            room: server.place.room,
            standing: server.standing,
            starts: server.last_beat.map(|beat| beat >> 32),
        });
        let mut groups = self.groups.clone();
        groups.iter_mut().for_each(|group| group.resumed(Time::ZERO));
        ControlState { servers: servers.collect(), groups, next_vssd: self.next_vssd }
    }

    /// A control plane that goes on where an earlier one of the same rack ended. Servers and groups
    /// may have been added.
    ///
    /// # Errors
    /// When the configuration is impossible, or lacks a server or a group of the state.
    pub fn resume(config: ControlConfig, state: ControlState) -> Result<Control, ControlError> {
        let mut control = Control::new(config)?;
        for kept in state.servers {
            let server = control.servers.iter_mut().find(|server| server.place.node == kept.node);
            let server = server.ok_or_else(|| ControlError::Changed { what: format!("server {}", kept.node.0) })?;
            // What a server has taken in it still has; the rack's file may leave it less.
            server.place.room = server.place.room.min(kept.room);
            server.standing = kept.standing;
            server.last_beat = kept.starts.map(|starts| starts << 32);
        }
        for kept in state.groups {
            let group = control.groups.iter_mut().find(|group| group.name == kept.name);
            let group = group.ok_or_else(|| ControlError::Changed { what: format!("group {}", kept.name.0) })?;
            *group = kept;
            group.resumed(Time::ZERO);
        }
        control.is_resumed = true;
        control.next_vssd = control.next_vssd.max(state.next_vssd);
        Ok(control)
    }
}
