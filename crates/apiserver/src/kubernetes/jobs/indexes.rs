//! Indexes of an indexed job as texts like `1,3-5`.

/// How many indexes a text names.
pub(super) fn count(text: &str, completions: i64) -> Result<i64, String> {
    let (mut total, mut last) = (0, None);
    for part in parts(text) {
        let (first, end) = interval(part, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

/// The first index that both texts name, as upstream finds it: parts that cannot be read are passed over.
pub(super) fn overlap(one: &str, other: &str, completions: i64) -> Option<i64> {
    let read = |text| -> Vec<(i64, i64)> {
        let intervals = parts(text).map(|part| interval(part, completions));
        intervals.filter_map(Result::ok).collect()
    };
    let (one, other) = (read(one), read(other));
    let (mut ones, mut others) = (one.into_iter().peekable(), other.into_iter().peekable());
    while let (Some(&(first, end)), Some(&(other_first, other_end))) = (ones.peek(), others.peek()) {
        if first <= other_end && other_first <= end {
            return Some(first.max(other_first));
        }
        if first <= other_first {
            ones.next();
        } else {
            others.next();
        }
    }
    None
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(move |_| !text.is_empty())
}

fn interval(part: &str, completions: i64) -> Result<(i64, i64), String> {
    let index = |text: &str| match text.parse::<i64>() {
        Err(_) => Err(format!("cannot convert string to integer for index: \"{text}\"")),
        Ok(index) if index >= completions => Err(format!("too large index: \"{text}\"")),
        Ok(index) => Ok(index),
    };
    let limits: Vec<&str> = part.split('-').collect();
    match limits.as_slice() {
        [one] => index(one).map(|index| (index, index)),
        [first, last] => match (index(first)?, index(last)?) {
            (first, last) if first >= last => Err(format!("non-increasing order, previous: {first}, current: {last}")),
            ends => Ok(ends),
        },
        _ => Err(format!(
            "the fragment \"{part}\" violates the requirement that an index interval can have at most two parts separated by '-'"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_counted() {
        for (text, expected) in [
            ("", Ok(0)),
            ("1,3-5", Ok(4)),
            ("0-9", Err("too large index: \"9\"")),
            ("2,1", Err("non-increasing order, previous: 2, current: 1")),
            ("3-3", Err("non-increasing order, previous: 3, current: 3")),
            ("x", Err("cannot convert string to integer for index: \"x\"")),
            (
                "1-2-3",
                Err(
                    "the fragment \"1-2-3\" violates the requirement that an index interval can have at most two parts separated by '-'",
                ),
            ),
        ] {
            assert_eq!(count(text, 6), expected.map_err(str::to_owned), "{text}");
        }
    }

    #[test]
    fn overlaps_are_found() {
        for (one, other, expected) in [
            ("", "1", None),
            ("1", "", None),
            ("0,2,4", "1,3,5", None),
            ("0-3", "2", Some(2)),
            ("2", "0-3", Some(2)),
            ("0,5", "1-4,5", Some(5)),
            ("x,5", "y,5", Some(5)),
            ("0,9", "9", None),
        ] {
            assert_eq!(overlap(one, other, 6), expected, "{one} {other}");
        }
    }
}
