//! What the system of a node keeps for itself, by the size of its machine [ADM-44]. The steps are those that Google publishes for its clusters.

const GI: i64 = 1 << 30;
const MI: i64 = 1 << 20;

/// Thousandths of a processor that are kept on a machine with so many.
pub fn cpu(milli: i64) -> i64 {
    let cores = milli / 1000;
    let first = if milli > 0 { 60 } else { 0 };
    let second = if milli > 1000 { 10 } else { 0 };
    let to_fourth = if milli > 2000 { (cores.min(4) - 2) * 5 } else { 0 };
    let rest = if milli > 4000 { (cores - 4) * 5 / 2 } else { 0 };
    first + second + to_fourth + rest
}

/// Bytes that are kept on a machine with so many.
pub fn memory(bytes: i64) -> i64 {
    if bytes < GI {
        return 255 * MI;
    }
    let between = |from: i64, to: i64| (bytes.min(to) - from).max(0);
    between(0, 4 * GI) / 4
        + between(4 * GI, 8 * GI) / 5
        + between(8 * GI, 16 * GI) / 10
        + between(16 * GI, 128 * GI) / 100 * 6
        + between(128 * GI, i64::MAX) / 100 * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adm_44_bigger_machines_keep_more_and_less_of_it() {
        for (milli, kept) in [
            (0, 0),
            (500, 60),
            (1000, 60),
            (1500, 70),
            (2000, 70),
            (3000, 75),
            (4000, 80),
            (8000, 90),
            (9000, 92),
            (64_000, 230),
        ] {
            assert_eq!(cpu(milli), kept, "{milli}");
        }
        for (gi, kept) in [
            (1, GI / 4),
            (4, GI),
            (8, GI + 4 * GI / 5),
            (16, GI + 4 * GI / 5 + 8 * GI / 10),
        ] {
            assert_eq!(memory(gi * GI), kept, "{gi}");
        }
        assert_eq!(memory(GI - 1), 255 * MI);
        assert_eq!(memory(256 * GI) - memory(128 * GI), 128 * GI / 100 * 2);
    }
}
