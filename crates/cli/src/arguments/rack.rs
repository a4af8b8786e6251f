//! Arguments of `rackweave rack`.

use base::Span;
use clap::{Args, Subcommand};
use ipnet::IpNet;
use std::net::SocketAddr;
use std::path::PathBuf;

/// `rackweave rack`
#[derive(Debug, Args)]
pub struct RackArguments {
    /// What to do with it
    #[command(subcommand)]
    pub verb: RackVerb,
}

/// What to do with a rack.
#[derive(Debug, Subcommand)]
pub enum RackVerb {
    /// Start every role that does not run, wait until all are ready, and say how to connect
    Up {
        /// The rack
        file: PathBuf,
        /// Start this role and no other; may be repeated
        #[arg(long, value_name = "NAME")]
        only: Vec<String>,
        /// Seconds that a role may take until it is ready
        #[arg(long, value_name = "S", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3600))]
        wait: u64,
        /// Give each role a network namespace, joined by a bridge with this address of this
        /// machine and this prefix, such as 10.99.0.254/24. Needs root; `down` removes all of it
        #[arg(long, value_name = "ADDRESS/PREFIX")]
        netns: Option<IpNet>,
        /// Delay each packet that a role sends, such as 50us (netem)
        #[arg(long, value_name = "TIME", requires = "netns")]
        delay: Option<Span>,
    },
    /// Show every role: state, process, time, memory, and what its metrics say
    Status {
        /// The rack
        file: PathBuf,
        /// Show this role and no other; may be repeated
        #[arg(long, value_name = "NAME")]
        only: Vec<String>,
        /// Print a list of objects for programs, with all metrics
        #[arg(long)]
        json: bool,
        /// Serve a page of all roles at this loopback address until a signal comes
        #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["only", "json"])]
        listen: Option<SocketAddr>,
    },
    /// End every role, the last started first: SIGTERM, and SIGKILL after 10 s
    Down {
        /// The rack
        file: PathBuf,
        /// End this role and no other; may be repeated
        #[arg(long, value_name = "NAME")]
        only: Vec<String>,
    },
    /// Run one role here until a signal ends it
    Role {
        /// The rack
        file: PathBuf,
        /// Which: `switch`, `control`, or the name of a storage server, a door or a store
        name: String,
        /// Leave the session of the terminal, as `up` asks for.
        #[arg(long, hide = true)]
        own_session: bool,
    },
    /// Print a systemd unit for each role
    Units {
        /// The rack
        file: PathBuf,
    },
}
