#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = quorate_tokio::zoo_cfg::ZooCfg::read("zoo.cfg")?;
    let server = quorate_tokio::start(config).await?;
    let mut leaders = server.leaders();
    while let Some(leader) = leaders.next().await {
        println!("who leads, and since which epoch: {leader:?}");
    }
    Ok(())
}
