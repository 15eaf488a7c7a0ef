//! In place of the crate of this name, for the tests of zookeeper-client: a container is a server on this machine.
//!
//! `rust_clients.py` makes a crate of it, and says with `JUDGED_SERVER` what starts one server when the file of its
//! settings is put behind it. What the tests ask of docker's image becomes settings: the properties of Java's machine, and the
//! zoo.cfg that would be mounted. With the host's network the ports are those of the tests, and otherwise free ones.

pub mod clients {
    use crate::core::{Container, RunnableImage};
    use crate::images::generic::GenericImage;

    #[derive(Default)]
    pub struct Cli;

    impl Cli {
        pub fn run(
            &self,
            image: impl Into<RunnableImage<GenericImage>>,
        ) -> Container<'_, GenericImage> {
            Container::run(image.into())
        }
    }
}

pub mod images {
    pub mod generic {
        use crate::core::{Healthcheck, WaitFor};

        #[derive(Default)]
        pub struct GenericImage {
            pub(crate) jvm_flags: String,
        }

        impl GenericImage {
            pub fn new(_name: &str, _tag: &str) -> Self {
                Self::default()
            }

            pub fn with_env_var(mut self, name: &str, value: String) -> Self {
                if name == "SERVER_JVMFLAGS" {
                    self.jvm_flags = value;
                }
                self
            }

            pub fn with_healthcheck(self, _how: Healthcheck) -> Self {
                self
            }

            pub fn with_wait_for(self, _what: WaitFor) -> Self {
                self
            }
        }
    }
}

pub mod core {
    use std::collections::HashMap;
    use std::io::{Read, Write};
    use std::marker::PhantomData;
    use std::net::{TcpListener, TcpStream};
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Stdio};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU16, Ordering};
    use std::time::{Duration, Instant};
    use std::{env, fs, thread};

    use crate::images::generic::GenericImage;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[derive(Default)]
    pub struct Healthcheck;

    impl Healthcheck {
        pub fn with_cmd<'a>(self, _words: impl Iterator<Item = &'a &'static str>) -> Self {
            self
        }

        pub fn with_interval(self, _every: Duration) -> Self {
            self
        }

        pub fn with_retries(self, _times: u32) -> Self {
            self
        }
    }

    pub enum WaitFor {
        Healthcheck,
    }

    pub struct RunnableImage<I> {
        image: I,
        volumes: HashMap<String, PathBuf>,
        on_host: bool,
    }

    impl From<GenericImage> for RunnableImage<GenericImage> {
        fn from(image: GenericImage) -> Self {
            Self { image, volumes: HashMap::new(), on_host: false }
        }
    }

    impl<I> RunnableImage<I> {
        pub fn with_volume(mut self, (here, there): (&str, &str)) -> Self {
            self.volumes.insert(there.to_owned(), here.into());
            self
        }

        pub fn with_network(mut self, network: &str) -> Self {
            self.on_host = network == "host";
            self
        }
    }

    /// A port that nobody uses and that the system gives to no one who connects.
    fn free_port() -> u16 {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let first = (std::process::id() % 10_000) as u16;
        loop {
            let port = 20_000 + (first + NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000;
            if TcpListener::bind(("127.0.0.1", port)).is_ok() {
                return port;
            }
        }
    }

    /// One server. It ends with it.
    pub struct Container<'a, I> {
        cfg: PathBuf,
        jvm_flags: String,
        port: u16,
        process: Mutex<Option<Child>>,
        _dir: tempfile::TempDir,
        _image: PhantomData<(&'a (), I)>,
    }

    impl Container<'_, GenericImage> {
        pub(crate) fn run(image: RunnableImage<GenericImage>) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let own = dir.path().join("data");
            let data = image.volumes.get("/data").unwrap_or(&own);
            fs::create_dir_all(data).unwrap();
            let myid = data.join("myid");
            if !myid.exists() {
                fs::write(&myid, "1\n").unwrap();
            }
            let id = fs::read_to_string(&myid).unwrap();

            let mut settings = match image.volumes.get("/conf/zoo.cfg") {
                Some(given) => fs::read_to_string(given).unwrap(),
                None => "clientPort=2181\ninitLimit=5\nsyncLimit=2\n".to_owned(),
            };
            let seen = format!("server.{}=", id.trim());
            let member = settings.lines().find(|line| line.starts_with(&seen)).map(str::to_owned);
            let port = match &member {
                Some(member) if image.on_host => {
                    member.rsplit(':').next().unwrap().parse().unwrap()
                }
                _ => free_port(),
            };
            if member.is_none() {
                let (quorum, election) = (free_port(), free_port());
                settings += &format!(
                    "\nserver.1=127.0.0.1:{quorum}:{election}:participant;127.0.0.1:{port}\n"
                );
            }
            let kept = settings
                .lines()
                .filter(|line| !line.starts_with("dataDir=") && !line.starts_with("clientPort="));
            let mut settings = kept.map(|line| format!("{line}\n")).collect::<String>();
            settings += &format!("dataDir={}\n", data.display());
            if !settings.contains("tickTime=") {
                settings += "tickTime=2000\n";
            }
            for flag in image.image.jvm_flags.split_whitespace() {
                let flag = flag.trim_start_matches("-D");
                settings += &format!("{}\n", flag.trim_start_matches("zookeeper."));
            }
            let cfg = dir.path().join("zoo.cfg");
            fs::write(&cfg, settings).unwrap();

            let container = Self {
                cfg,
                jvm_flags: image.image.jvm_flags,
                port,
                process: Mutex::new(None),
                _dir: dir,
                _image: PhantomData,
            };
            container.start();
            container
        }
    }

    impl<I> Container<'_, I> {
        /// Starts it, again too, and waits until it serves.
        pub fn start(&self) {
            let server =
                env::var("JUDGED_SERVER").expect("JUDGED_SERVER says what starts a server");
            let mut words = server.split_whitespace();
            let log = fs::File::create(self.log()).unwrap();
            let child = Command::new(words.next().unwrap())
                .args(words)
                .arg(&self.cfg)
                .env_remove("RUST_LOG")
                .env("JAVA_TOOL_OPTIONS", &self.jvm_flags)
                .stdin(Stdio::null())
                .stdout(log.try_clone().unwrap())
                .stderr(log)
                .spawn()
                .unwrap();
            *self.process.lock().unwrap() = Some(child);
            let begun = Instant::now();
            while !self.serves() {
                assert!(
                    begun.elapsed() < PATIENCE,
                    "it does not serve: {}",
                    fs::read_to_string(self.log()).unwrap()
                );
                thread::sleep(Duration::from_millis(50));
            }
        }

        pub fn stop(&self) {
            if let Some(mut child) = self.process.lock().unwrap().take() {
                child.kill().unwrap();
                child.wait().unwrap();
            }
        }

        pub fn get_host_port(&self, _port: u16) -> u16 {
            self.port
        }

        pub fn stdout(&self) -> LogStream {
            LogStream { log: self.log() }
        }

        fn log(&self) -> PathBuf {
            self.cfg.with_extension("log")
        }

        fn serves(&self) -> bool {
            let ask = || {
                let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
                stream.set_read_timeout(Some(Duration::from_secs(5)))?;
                stream.write_all(b"srvr")?;
                let mut said = String::new();
                stream.read_to_string(&mut said)?;
                Ok::<_, std::io::Error>(said.contains("Mode: "))
            };
            ask().unwrap_or(false)
        }
    }

    impl<I> Drop for Container<'_, I> {
        fn drop(&mut self) {
            self.stop();
        }
    }

    pub struct LogStream {
        log: PathBuf,
    }

    impl LogStream {
        pub fn wait_for_message(&self, message: &str) -> Result<(), String> {
            let begun = Instant::now();
            while !says(&self.log, message) {
                if begun.elapsed() > PATIENCE {
                    return Err(format!("it never said {message}"));
                }
                thread::sleep(Duration::from_millis(50));
            }
            Ok(())
        }
    }

    fn says(log: &Path, message: &str) -> bool {
        fs::read_to_string(log).is_ok_and(|said| said.contains(message))
    }
}
