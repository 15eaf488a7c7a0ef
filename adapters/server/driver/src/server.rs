//! A server: the handle that programs embed, its start, and its life from the first step to the last socket.

mod clients;
mod figures;
mod handle;
mod leading;
mod network;
mod open;
mod operating;
mod patience;
mod requests;
mod run;
mod start;
mod wake;

pub use handle::Server;
