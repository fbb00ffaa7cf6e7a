//! How two texts differ, line by line, with three lines around each change: the unified form, with the matches that Python's `difflib`
//! and its ports to other languages find, for which of several equal lines belong together is a matter of the algorithm.

use std::collections::HashMap;

/// How many lines are shown around a change.
const AROUND: usize = 3;
/// From how many lines on lines that are frequent do not lead to a match.
const MANY: usize = 200;

/// Lines that are the same: where they begin in both texts, and how many they are.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Match {
    old: usize,
    new: usize,
    len: usize,
}

struct Matcher<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    /// Where lines stand in the new text; without those that stand there often.
    places: HashMap<&'a str, Vec<usize>>,
}

impl<'a> Matcher<'a> {
    fn of(old: &'a str, new: &'a str) -> Self {
        let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
        let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, line) in new.iter().enumerate() {
            places.entry(*line).or_default().push(at);
        }
        if new.len() >= MANY {
            let often = new.len() / 100 + 1;
            places.retain(|_, at| at.len() <= often);
        }
        Self { old, new, places }
    }

    fn same(&self, old: usize, new: usize) -> bool {
        matches!((self.old.get(old), self.new.get(new)), (Some(old), Some(new)) if old == new)
    }

    /// The longest match between these lines, the first of several.
    fn longest(&self, old: (usize, usize), new: (usize, usize)) -> Match {
        let mut best = Match {
            old: old.0,
            new: new.0,
            len: 0,
        };
        // how long the matches are that end with the previous line of the old text, by where they end in the new one
        let mut lengths: HashMap<usize, usize> = HashMap::new();
        for at in old.0..old.1 {
            let mut now = HashMap::new();
            let places = self.old.get(at).and_then(|line| self.places.get(line));
            for place in places.into_iter().flatten().copied() {
                if place < new.0 {
                    continue;
                }
                if place >= new.1 {
                    break;
                }
                let before = place.checked_sub(1).and_then(|before| lengths.get(&before));
                let len = before.copied().unwrap_or(0) + 1;
                now.insert(place, len);
                if len > best.len {
                    best = Match {
                        old: at + 1 - len,
                        new: place + 1 - len,
                        len,
                    };
                }
            }
            lengths = now;
        }
        while best.old > old.0 && best.new > new.0 && self.same(best.old - 1, best.new - 1) {
            best = Match {
                old: best.old - 1,
                new: best.new - 1,
                len: best.len + 1,
            };
        }
        while best.old + best.len < old.1
            && best.new + best.len < new.1
            && self.same(best.old + best.len, best.new + best.len)
        {
            best.len += 1;
        }
        best
    }

    /// All matches in their order, an empty one at the end.
    fn matches(&self) -> Vec<Match> {
        let end = (self.old.len(), self.new.len());
        let mut found = Vec::new();
        let mut open = vec![((0, end.0), (0, end.1))];
        while let Some((old, new)) = open.pop() {
            let longest = self.longest(old, new);
            if longest.len == 0 {
                continue;
            }
            found.push(longest);
            open.push(((old.0, longest.old), (new.0, longest.new)));
            open.push(((longest.old + longest.len, old.1), (longest.new + longest.len, new.1)));
        }
        found.sort_by_key(|own| (own.old, own.new));
        found.push(Match {
            old: end.0,
            new: end.1,
            len: 0,
        });
        found
    }
}

/// A piece of both texts.
struct Piece {
    old: (usize, usize),
    new: (usize, usize),
    same: bool,
}

/// The pieces of which both texts consist, one after the other.
fn pieces(matches: &[Match]) -> Vec<Piece> {
    let (mut old, mut new) = (0, 0);
    let mut found = Vec::new();
    for own in matches {
        if old < own.old || new < own.new {
            found.push(Piece {
                old: (old, own.old),
                new: (new, own.new),
                same: false,
            });
        }
        (old, new) = (own.old + own.len, own.new + own.len);
        if own.len > 0 {
            found.push(Piece {
                old: (own.old, old),
                new: (own.new, new),
                same: true,
            });
        }
    }
    found
}

/// The changes, those together that are near each other, with the lines around them.
fn groups(pieces: Vec<Piece>) -> Vec<Vec<Piece>> {
    let count = pieces.len();
    let mut groups = Vec::new();
    let mut group = Vec::new();
    for (at, piece) in pieces.into_iter().enumerate() {
        if !piece.same {
            group.push(piece);
            continue;
        }
        let len = piece.old.1 - piece.old.0;
        let (is_first, is_last) = (at == 0, at + 1 == count);
        // what of the same lines follows the change before, and what precedes the one behind
        let head = if is_first { 0 } else { len.min(AROUND) };
        let tail = if is_last { 0 } else { len.min(AROUND) };
        if !is_first && !is_last && len <= 2 * AROUND {
            group.push(piece);
            continue;
        }
        if !is_first {
            group.push(Piece {
                old: (piece.old.0, piece.old.0 + head),
                new: (piece.new.0, piece.new.0 + head),
                same: true,
            });
            groups.push(std::mem::take(&mut group));
        }
        if !is_last {
            group.push(Piece {
                old: (piece.old.1 - tail, piece.old.1),
                new: (piece.new.1 - tail, piece.new.1),
                same: true,
            });
        }
    }
    groups.push(group);
    groups.retain(|group| group.iter().any(|piece| !piece.same));
    groups
}

/// Lines as the head of a group tells them: the first, and how many if not one.
fn range(from: usize, to: usize) -> String {
    match to - from {
        1 => (from + 1).to_string(),
        0 => format!("{from},0"),
        len => format!("{},{len}", from + 1),
    }
}

/// How two texts differ; empty when they do not.
pub(super) fn unified(old: &str, new: &str) -> String {
    let matcher = Matcher::of(old, new);
    let mut out = String::new();
    for group in groups(pieces(&matcher.matches())) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let heads = (range(first.old.0, last.old.1), range(first.new.0, last.new.1));
        out.push_str(&format!("@@ -{} +{} @@\n", heads.0, heads.1));
        for piece in &group {
            let lines = |of: &[&str], (from, to): (usize, usize), mark: char| -> String {
                let of = of.get(from..to).unwrap_or_default();
                of.iter().map(|line| format!("{mark}{line}\n")).collect()
            };
            if piece.same {
                out.push_str(&lines(&matcher.old, piece.old, ' '));
            } else {
                out.push_str(&lines(&matcher.old, piece.old, '-'));
                out.push_str(&lines(&matcher.new, piece.new, '+'));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn changes_near_each_other_are_shown_together() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\nn";
        for (new, expected) in [
            (old.to_owned(), ""),
            (old.replace("\nb", "\nB"), "@@ -1,5 +1,5 @@\n a\n-b\n+B\n c\n d\n e\n"),
            (old.replace("\nb", ""), "@@ -1,5 +1,4 @@\n a\n-b\n c\n d\n e\n"),
            (
                old.replace("\nd", "\nD").replace("\ni", "\nI\nJ"),
                "@@ -1,12 +1,13 @@\n a\n b\n c\n-d\n+D\n e\n f\n g\n h\n-i\n+I\n+J\n j\n k\n l\n",
            ),
            (
                old.replace("\nb", "\nB").replace("\nm", "\nM"),
                "@@ -1,5 +1,5 @@\n a\n-b\n+B\n c\n d\n e\n@@ -10,5 +10,5 @@\n j\n k\n l\n-m\n+M\n n\n",
            ),
        ] {
            assert_eq!(unified(old, &new), expected);
        }
        assert_eq!(unified("a", "b"), "@@ -1 +1 @@\n-a\n+b\n");
    }

    proptest! {
        /// Both texts can be read from their difference where all lines are shown, and nothing but changes is marked.
        #[test]
        fn both_texts_are_in_the_difference(old in "[ab\n]{0,6}", new in "[ab\n]{0,6}") {
            let shown = unified(&old, &new);
            prop_assert_eq!(shown.is_empty(), old == new);
            let side = |mark: char| -> Vec<String> {
                let lines = shown.lines().filter(|line| !line.starts_with("@@"));
                lines.filter(|line| line.starts_with([' ', mark])).map(|line| line[1..].to_owned()).collect()
            };
            if old.split('\n').count() <= 4 && new.split('\n').count() <= 4 && old != new {
                prop_assert_eq!(side('-').join("\n"), old);
                prop_assert_eq!(side('+').join("\n"), new);
            }
        }
    }
}
