use bytes::Bytes;
use quorate_tokio::{Replicated, RestoreError, StateMachine, core::zxid::Zxid, start_with, zoo_cfg::ZooCfg};

#[derive(Default)] struct Sum(i64);

impl StateMachine for Sum {
    type State = i64;
    /// On every server, in the same order.
    fn apply(&mut self, _: Zxid, command: &[u8]) -> Bytes {
        self.0 += std::str::from_utf8(command).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        self.0.to_string().into()
    }
    fn save(&self) -> i64 { self.0 }
    fn load(&mut self, sum: i64) { self.0 = sum; }
    fn write(sum: i64) -> impl Iterator<Item = Bytes> + Send { std::iter::once(sum.to_string().into()) }
    fn read(sum: &mut i64, piece: &[u8]) -> Result<(), RestoreError> { *sum = std::str::from_utf8(piece)?.parse()?; Ok(()) }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = start_with(ZooCfg::read("zoo.cfg")?, Replicated::new("sum", Sum::default())).await?;
    let added = server.propose("7").await?; // on the disks of a quorum, and applied here
    let sum = server.read(|sum| sum.machine().0).await?; // sees every write done before it
    println!("{sum} after transaction {}", added.zxid);
    Ok(())
}
