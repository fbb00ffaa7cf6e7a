//! Values in little memory.
//!
//! The values of a topic resemble each other most in their heads, and heads are asked for more often than whole values. So a value is compressed in
//! two parts, its head and the rest, each with what one head of its topic looked like as the dictionary. That head alone outlives its value: what
//! is behind it may be secret.

use std::sync::Arc;

use crate::{Entry, Form, Topic};

/// Values shorter than this are never compressed: their entries take more.
const LEAST: usize = 128;

/// More of a head gains little, and is looked through with each value.
const LONGEST: usize = 4096;

/// How many values a topic has before they are compressed with a dictionary, which takes as much memory as some of them.
pub(crate) const ALIKE: usize = 64;

/// What the heads of a topic's values look like.
#[derive(Debug)]
pub(crate) struct Dictionary(Box<[u8]>);

impl Dictionary {
    /// None of a value that has no head.
    pub(crate) fn of(value: &[u8], form: Form) -> Option<Self> {
        let (head, _) = form.split(value);
        let head = head.get(..LONGEST).unwrap_or(head);
        (!head.is_empty()).then(|| Self(head.into()))
    }
}

/// What values of one topic are compressed with.
#[derive(Clone, Debug)]
pub(crate) struct Squeezer {
    form: Form,
    dictionary: Option<Arc<Dictionary>>,
}

impl Squeezer {
    pub(crate) fn new(form: Form, dictionary: Option<Arc<Dictionary>>) -> Self {
        Self { form, dictionary }
    }

    /// None, if that would not save a quarter of the value.
    pub(crate) fn squeeze(&self, value: &[u8]) -> Option<Squeezed> {
        if value.len() < LEAST {
            return None;
        }
        let (head, rest) = self.form.split(value);
        let dictionary = text(self.dictionary.as_ref());
        let packed = [head, rest].map(|part| lz4_flex::block::compress_with_dict(part, dictionary));
        let size = packed.iter().map(Vec::len).sum::<usize>();
        if size >= value.len() / 4 * 3 {
            return None;
        }
        let [packed_head, packed_rest] = packed;
        let lengths = Lengths {
            head: head.len().try_into().ok()?,
            rest: rest.len().try_into().ok()?,
            packed_head: packed_head.len().try_into().ok()?,
        };
        let bytes = [&lengths.to_bytes()[..], &packed_head, &packed_rest].concat();
        Some(Squeezed {
            bytes: bytes.into(),
            dictionary: self.dictionary.clone(),
        })
    }
}

/// Compresses entries of many topics that come one topic after the other.
pub(crate) struct InOrder {
    squeezer: Squeezer,
    topic: Option<Topic>,
    /// How many entries of the topic came.
    seen: usize,
}

impl InOrder {
    pub(crate) fn new(form: Form) -> Self {
        Self {
            squeezer: Squeezer::new(form, None),
            topic: None,
            seen: 0,
        }
    }

    /// The next entry: compressed, or as it is if that would not save enough.
    pub(crate) fn squeezed(&mut self, entry: Entry) -> Entry {
        let topic = &entry.key.topic;
        if self.topic.as_ref() != Some(topic) {
            self.topic = Some(topic.clone());
            self.squeezer.dictionary = None;
            self.seen = 0;
        }
        self.seen += 1;
        if self.seen == ALIKE {
            self.squeezer.dictionary = Dictionary::of(&entry.value(), self.squeezer.form).map(Arc::new);
        }
        entry.squeezed(&self.squeezer).unwrap_or(entry)
    }
}

fn text(dictionary: Option<&Arc<Dictionary>>) -> &[u8] {
    dictionary.map_or(&[], |dictionary| &dictionary.0)
}

/// A compressed value: [`Lengths`], the head and the rest.
#[derive(Clone)]
pub(crate) struct Squeezed {
    bytes: Box<[u8]>,
    dictionary: Option<Arc<Dictionary>>,
}

/// How long the parts are, and the compressed head; the compressed rest ends where all ends.
struct Lengths {
    head: u32,
    rest: u32,
    packed_head: u32,
}

impl Lengths {
    const SIZE: usize = 12;

    fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let parts = [self.head, self.rest, self.packed_head];
        for (place, part) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(parts) {
            *place = part.to_le_bytes();
        }
        bytes
    }

    fn of(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (lengths, parts) = bytes.split_at_checked(Self::SIZE)?;
        let &[head, rest, packed_head] = lengths.as_chunks::<4>().0 else {
            return None;
        };
        let lengths = Self {
            head: u32::from_le_bytes(head),
            rest: u32::from_le_bytes(rest),
            packed_head: u32::from_le_bytes(packed_head),
        };
        Some((lengths, parts))
    }
}

impl Squeezed {
    /// The bytes it takes, but for the dictionary, which is shared.
    pub(crate) fn cost(&self) -> usize {
        self.bytes.len()
    }

    /// The value's head.
    pub(crate) fn head(&self) -> Vec<u8> {
        self.unpacked(false)
    }

    /// The value.
    pub(crate) fn whole(&self) -> Vec<u8> {
        self.unpacked(true)
    }

    fn unpacked(&self, with_rest: bool) -> Vec<u8> {
        match self.try_unpacked(with_rest) {
            Some(value) => value,
            None => unreachable!("it was compressed here, in memory"),
        }
    }

    fn try_unpacked(&self, with_rest: bool) -> Option<Vec<u8>> {
        let (lengths, parts) = Lengths::of(&self.bytes)?;
        let (packed_head, packed_rest) = parts.split_at_checked(lengths.packed_head as usize)?;
        let rest = if with_rest { lengths.rest as usize } else { 0 };
        let mut value = vec![0; lengths.head as usize + rest];
        let (head, rest) = value.split_at_mut_checked(lengths.head as usize)?;
        let unpack = |packed: &[u8], part: &mut [u8]| {
            lz4_flex::block::decompress_into_with_dict(packed, part, text(self.dictionary.as_ref())).ok()
        };
        unpack(packed_head, head)?;
        if with_rest {
            unpack(packed_rest, rest)?;
        }
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::contract::FORM;
    use crate::dice::Dice;

    /// A head, and much behind it that no other value has.
    fn value(number: u32) -> Vec<u8> {
        let mut dice = Dice::new(number.into());
        let rest: String = (0..60).map(|_| format!("part {}, ", dice.below(1000))).collect();
        format!("name: {number}, kind: thing, managers: [one, another, a third], labels: {{app: things}};{rest}").into()
    }

    #[test]
    fn a_head_is_told_without_the_rest() {
        let squeezer = Squeezer::new(FORM, None);
        let squeezed = squeezer.squeeze(&value(7)).unwrap();
        assert!(value(7).starts_with(&squeezed.head()));
        assert!(squeezed.head().ends_with(b";"));
        assert_eq!(squeezed.whole(), value(7));
    }

    #[test]
    fn what_others_of_the_topic_say_too_takes_next_to_nothing() {
        let alone = Squeezer::new(FORM, None).squeeze(&value(7)).unwrap();
        let dictionary = Dictionary::of(&value(8), FORM).map(Arc::new);
        let among_others = Squeezer::new(FORM, dictionary).squeeze(&value(7)).unwrap();
        assert!(among_others.cost() + alone.head().len() / 2 < alone.cost());
        assert_eq!(among_others.whole(), value(7));
    }

    #[test]
    fn what_is_behind_the_head_is_not_kept_as_a_dictionary() {
        let Dictionary(kept) = Dictionary::of(&value(7), FORM).unwrap();
        assert!(kept.ends_with(b";"));
        assert!(Dictionary::of(b"without a head", FORM).is_none());
        let long = [&[b'x'; LONGEST][..], b"yy;rest"].concat();
        assert_eq!(*Dictionary::of(&long, FORM).unwrap().0, [b'x'; LONGEST]);
    }

    proptest! {
        #[test]
        fn whatever_was_squeezed_comes_back(
            texts in prop::collection::vec(("[a-c;]{0,9}", 0usize..90), 2..9),
            noise in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let text = |(text, times): &(String, usize)| text.repeat(*times).into_bytes();
            let values: Vec<_> = texts.iter().map(text).chain([noise]).collect();
            let mut dictionary = None;
            for value in &values {
                let squeezer = Squeezer::new(FORM, dictionary);
                if let Some(squeezed) = squeezer.squeeze(value) {
                    prop_assert_eq!(&squeezed.whole(), value);
                    prop_assert_eq!(&squeezed.head()[..], FORM.split(value).0);
                    prop_assert!(squeezed.cost() < value.len());
                }
                dictionary = Dictionary::of(value, FORM).map(Arc::new);
            }
        }
    }
}
