//! The examples do what they say.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::error::Error;
use std::future::Future;
use std::time::Duration;

macro_rules! example {
    ($name:ident, $path:literal, $test:ident) => {
        #[expect(dead_code, reason = "it is run from here, not from its main")]
        #[path = $path]
        mod $name;

        #[tokio::test]
        async fn $test() {
            in_time($name::run()).await;
        }
    };
}

async fn in_time(example: impl Future<Output = Result<(), Box<dyn Error>>>) {
    tokio::time::timeout(Duration::from_secs(30), example).await.unwrap().unwrap();
}

example!(elect_only, "../examples/elect_only.rs", electing_a_leader);
example!(membership, "../examples/membership.rs", changing_the_membership);
example!(observer, "../examples/observer.rs", observing);
example!(replicated_register, "../examples/replicated_register.rs", a_replicated_register);
example!(run_while_leader, "../examples/run_while_leader.rs", working_while_leader);
