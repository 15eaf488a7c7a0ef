//! What a server is told before it starts: read, built, and kept when it changes.

mod builder;
mod membership_files;
mod server_config;

pub use builder::{BuildError, ServerConfigBuilder};
pub(crate) use membership_files::MembershipFiles;
pub use membership_files::replace_membership;
#[cfg(feature = "tls")]
pub use server_config::SecureClients;
pub use server_config::ServerConfig;
