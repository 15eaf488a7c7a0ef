//! Values by number, and what has come of what.
//!
//! ```text
//!   server 17 ── LEADERINFO(2) ──► server 42, and it sends …        stepped once, remembered for ever
//! ```
//!
//! The states of an ensemble are many, those of one server are few. A server is stepped once for each pair of
//! its state and what happens to it; all states of the ensemble in which the same happens share that.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{OnceLock, PoisonError, RwLock};

/// A quick hash of a few numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}

/// For maps by a few numbers.
pub type Quick = BuildHasherDefault<Mix>;

const SHARDS: u64 = 64;
const CHUNK: usize = 1 << 12;
const CHUNKS: usize = 1 << 16;

fn shard(hash: u64) -> usize {
    usize::try_from(hash % SHARDS).unwrap_or(0)
}

type Chunk<T> = Box<[OnceLock<T>]>;

/// Values, each with a number; equal values have the same. They are never dropped, so that reading one takes no
/// lock.
#[derive(Debug)]
pub struct Table<T> {
    chunks: Box<[OnceLock<Chunk<T>>]>,
    issued: AtomicU32,
    /// By hash, or a little more than that where two have the same.
    numbers: Vec<RwLock<HashMap<u64, u32, Quick>>>,
}

impl<T: Eq + Hash> Table<T> {
    /// No values.
    pub fn new() -> Self {
        Self {
            chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect(),
            issued: AtomicU32::new(0),
            numbers: (0..SHARDS).map(|_| RwLock::default()).collect(),
        }
    }

    /// The number of a value.
    pub fn number(&self, value: T) -> u32 {
        let mut hash = Quick::default().hash_one(&value);
        let shard = &self.numbers[shard(hash)];
        {
            let known = shard.read().unwrap_or_else(PoisonError::into_inner);
            let mut hash = hash;
            while let Some(number) = known.get(&hash) {
                if *self.get(*number) == value {
                    return *number;
                }
                hash = hash.wrapping_add(1);
            }
        }
        let mut known = shard.write().unwrap_or_else(PoisonError::into_inner);
        while let Some(number) = known.get(&hash) {
            if *self.get(*number) == value {
                return *number;
            }
            hash = hash.wrapping_add(1);
        }
        let number = self.issued.fetch_add(1, Ordering::Relaxed);
        let chunk = self.chunks[number as usize / CHUNK]
            .get_or_init(|| (0..CHUNK).map(|_| OnceLock::new()).collect());
        assert!(chunk[number as usize % CHUNK].set(value).is_ok(), "a number is issued once");
        known.insert(hash, number);
        number
    }

    /// The value of a number.
    pub fn get(&self, number: u32) -> &T {
        let chunk = self.chunks[number as usize / CHUNK].get();
        let value = chunk.and_then(|chunk| chunk[number as usize % CHUNK].get());
        value.expect("a number that was issued")
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.issued.load(Ordering::Relaxed) as usize
    }
}

/// Answers that never change, by question.
#[derive(Debug)]
pub struct Memory<K, V> {
    answers: Vec<RwLock<HashMap<K, V, Quick>>>,
}

impl<K: Eq + Hash, V: Clone> Memory<K, V> {
    /// Nothing is known.
    pub fn new() -> Self {
        Self { answers: (0..SHARDS).map(|_| RwLock::default()).collect() }
    }

    /// The answer, worked out the first time.
    pub fn recall(&self, question: K, answer: impl FnOnce(&K) -> V) -> V {
        let hash = Quick::default().hash_one(&question) >> 32;
        let shard = &self.answers[shard(hash)];
        if let Some(known) = shard.read().unwrap_or_else(PoisonError::into_inner).get(&question) {
            return known.clone();
        }
        let new = answer(&question);
        shard.write().unwrap_or_else(PoisonError::into_inner).insert(question, new.clone());
        new
    }
}
