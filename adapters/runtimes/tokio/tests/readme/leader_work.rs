loop {
    let leadership = server.leadership().await?; // waits until this server leads
    let token = leadership.token();              // greater than every earlier leader's
    if let Err(lost) = leadership.run(work(token)).await {
        println!("{lost}");                      // the work has been dropped
    }
}                                                // the guard goes, and now the seat may
