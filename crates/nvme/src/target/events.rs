//! Events of a subsystem for its controllers, which report them to their hosts.

use crate::HostId;
use crate::feature::Event;
use crate::target::PortId;
use crate::target::controller::Controller;
use crate::target::controllers::Controllers;

/// An event of a subsystem for its controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubsystemEvent<'a> {
    /// A namespace was added, removed or changed.
    NamespaceChanged(u32),
    /// A namespace was removed, and another one has its number.
    NamespaceReplaced(u32),
    /// The ANA state of a group changed, as reached by this port.
    PathChanged(PortId),
    /// A namespace moved to another ANA group.
    GroupChanged,
    /// Reservations of a namespace changed against these hosts, in this way (Base 2.0, Figure 264).
    ReservationLost { namespace: u32, hosts: &'a [HostId], kind: u8 },
}

impl Controller {
    /// Takes an event of the subsystem. Returns whether the controller has something to report.
    fn on_subsystem_event(&mut self, event: SubsystemEvent<'_>) -> bool {
        match event {
            SubsystemEvent::NamespaceChanged(id) => {
                self.changed_namespaces.insert(id);
                self.raise(Event::NAMESPACE_CHANGED);
            }
            SubsystemEvent::NamespaceReplaced(id) => {
                self.replaced_namespaces.insert(id);
                return false;
            }
            SubsystemEvent::PathChanged(port) if port != self.port => return false,
            SubsystemEvent::PathChanged(_) | SubsystemEvent::GroupChanged => {
                self.raise(Event::ASYMMETRIC_ACCESS_CHANGED);
            }
            SubsystemEvent::ReservationLost { hosts, .. } if !hosts.contains(&self.host_id) => return false,
            SubsystemEvent::ReservationLost { namespace, kind, .. } => self.notify_reservation(namespace, kind),
        }
        true
    }
}

impl Controllers {
    /// Tells the controllers of the subsystem at `at`. Returns those that have something to report.
    pub(super) fn on_subsystem_event(&mut self, at: usize, event: SubsystemEvent<'_>) -> Vec<u16> {
        let of_subsystem = self.iter_mut().filter(|known| known.subsystem() == Some(at));
        of_subsystem.filter_map(|known| known.on_subsystem_event(event).then_some(known.id)).collect()
    }

    /// The discovery log changed. Returns the discovery controllers.
    pub(super) fn on_discovery_change(&mut self) -> Vec<u16> {
        let discovery = self.iter_mut().filter(|known| known.subsystem().is_none());
        discovery
            .map(|known| {
                known.raise(Event::DISCOVERY_CHANGED);
                known.id
            })
            .collect()
    }
}
