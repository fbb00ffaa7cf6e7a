//! How far apart two regions are, by their names alone `[SCH-12]`.

const ORIENTATIONS: [&str; 5] = ["north", "south", "east", "west", "central"];

/// Splits a region's name into its base and the orientation in it.
fn split(region: &str) -> (String, Option<&'static str>) {
    for orientation in ORIENTATIONS {
        if let Some((before, after)) = region.split_once(orientation) {
            return (format!("{before}:{after}"), Some(orientation));
        }
    }
    (region.to_owned(), None)
}

fn levenshtein(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (y, cell) in b.iter().zip(row.iter_mut().skip(1)) {
            let above = *cell;
            let cost = (diagonal + usize::from(x != *y)).min(above + 1).min(left + 1);
            diagonal = above;
            left = cost;
            *cell = cost;
        }
    }
    row.last().copied().unwrap_or_default()
}

/// Twice the edit distance of the bases, and up to two for orientations that differ.
pub fn region_distance(one: &str, other: &str) -> usize {
    let ((base_a, a), (base_b, b)) = (split(one), split(other));
    let orientation = match (a, b) {
        (Some(a), Some(b)) if a != b => 2,
        (Some(_), None) | (None, Some(_)) => 1,
        _ => 0,
    };
    2 * levenshtein(&base_a, &base_b) + orientation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sch_12_examples() {
        for (a, b, distance) in [
            ("europe", "asia", 12),
            ("europe-west", "europe-east", 2),
            ("europe-west", "europe-:", 1),
            ("europe-west", "asia-east", 14),
            ("us-north", "us-northeast", 8),
            ("same", "same", 0),
        ] {
            assert_eq!(region_distance(a, b), distance, "{a} {b}");
            assert_eq!(region_distance(b, a), distance, "{b} {a}");
        }
    }
}
