//! The examples do what they say.
#![allow(clippy::unwrap_used, reason = "a test")]

#[expect(dead_code, reason = "it is run from here, not from its main")]
#[path = "../examples/replicated_register.rs"]
mod replicated_register;

#[tokio::test]
async fn a_replicated_register() {
    let run = replicated_register::run();
    tokio::time::timeout(std::time::Duration::from_secs(20), run).await.unwrap().unwrap();
}
