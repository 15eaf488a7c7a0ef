use quorate_tokio::{FencingToken, LeadershipError, Server};

async fn lead(server: Server, work: impl AsyncFn(FencingToken)) -> Result<(), LeadershipError> {
    loop {
        let leadership = server.leadership().await?; // waits until this server leads
        let token = leadership.token();              // greater than every earlier leader's
        if let Err(lost) = leadership.run(work(token)).await {
            println!("{lost}");                      // the work has been dropped
        }
    }                                                // the guard goes: another server may lead now
}
