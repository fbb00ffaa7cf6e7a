//! The one source of chance: a generator that is seeded once and handed to whoever needs it.

use std::sync::Arc;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The characters of generated names: Kubernetes leaves out vowels and digits that look like them.
const NAME_CHARACTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A seeded generator. Cheap to clone; clones draw from the same sequence.
#[derive(Clone, Debug)]
pub struct Chance {
    generator: Arc<Mutex<StdRng>>,
    /// What [`Chance::fraction_of`] starts from.
    seed: u64,
}

impl Chance {
    /// A generator whose sequence is fixed by `seed`.
    pub fn seeded(seed: u64) -> Self {
        Self {
            generator: Arc::new(Mutex::new(StdRng::seed_from_u64(seed))),
            seed,
        }
    }

    /// A generator whose sequence nobody can foretell: seeded by the operating system.
    pub fn from_system() -> Self {
        let mut generator: StdRng = rand::make_rng();
        let seed = generator.random();
        Self {
            generator: Arc::new(Mutex::new(generator)),
            seed,
        }
    }

    /// Any number.
    pub fn number(&self) -> u64 {
        self.generator.lock().random()
    }

    /// A number in `0..bound`; 0 when the bound is 0.
    pub fn below(&self, bound: u64) -> u64 {
        if bound == 0 {
            0
        } else {
            self.generator.lock().random_range(0..bound)
        }
    }

    /// A number in `0.0..1.0`.
    pub fn fraction(&self) -> f64 {
        self.generator.lock().random()
    }

    /// A number in `0.0..1.0` that belongs to a text: the same one whenever and by whomever it is asked for, as long as the seed is the same.
    /// For chance that somebody else must be able to foretell, or that must outlast a restart.
    pub fn fraction_of(&self, text: &str) -> f64 {
        StdRng::seed_from_u64(self.seed ^ fnv(text)).random()
    }

    /// A version 4 UUID as text.
    pub fn uid(&self) -> String {
        uuid::Builder::from_random_bytes(self.generator.lock().random())
            .into_uuid()
            .to_string()
    }

    /// `length` characters as Kubernetes appends them to `generateName`.
    pub fn name_suffix(&self, length: usize) -> String {
        let mut generator = self.generator.lock();
        (0..length)
            .filter_map(|_| NAME_CHARACTERS.get(generator.random_range(0..NAME_CHARACTERS.len())))
            .map(|byte| char::from(*byte))
            .collect()
    }

    /// `length` random lower-case hexadecimal characters.
    pub fn hex(&self, length: usize) -> String {
        let mut generator = self.generator.lock();
        (0..length)
            .filter_map(|_| char::from_digit(generator.random_range(0..16), 16))
            .collect()
    }

    /// `length` random bytes. Not for keys: those come from the operating system.
    pub fn bytes(&self, length: usize) -> Vec<u8> {
        let mut generator = self.generator.lock();
        (0..length).map(|_| generator.random()).collect()
    }
}

/// FNV-1a with 64 bits: stable wherever it is computed.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A version 4 UUID as of [`Chance::uid`], from a number that was drawn before.
pub fn uid_of(number: u64) -> String {
    Chance::seeded(number).uid()
}

/// `length` characters as of [`Chance::name_suffix`], from a number that was drawn before. A number is good for at most twelve.
pub fn suffix_of(mut number: u64, length: usize) -> String {
    let base = NAME_CHARACTERS.len() as u64;
    let mut suffix = String::with_capacity(length);
    for _ in 0..length {
        let at = usize::try_from(number % base).unwrap_or_default();
        suffix.extend(NAME_CHARACTERS.get(at).map(|byte| char::from(*byte)));
        number /= base;
    }
    suffix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same() {
        let (one, two) = (Chance::seeded(7), Chance::seeded(7));
        assert_eq!(one.uid(), two.uid());
        assert_eq!(one.name_suffix(5), two.name_suffix(5));
        assert_ne!(one.uid(), one.uid());
        assert_eq!(one.below(0), 0);
        assert_eq!(one.fraction_of("a"), two.fraction_of("a"));
        assert_ne!(one.fraction_of("a"), one.fraction_of("b"));
        assert_ne!(one.fraction_of("a"), Chance::seeded(8).fraction_of("a"));
        assert_eq!(uid_of(7), Chance::seeded(7).uid());
        assert_ne!(uid_of(7), uid_of(8));
        assert_eq!(suffix_of(0, 5), "bbbbb");
        assert_ne!(suffix_of(one.number(), 5), suffix_of(one.number(), 5));
    }
}
