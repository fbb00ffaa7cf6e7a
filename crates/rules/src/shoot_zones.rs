//! In which zones of the seed a control plane lives [CP-3].

use std::collections::BTreeSet;

/// The zones of a control plane. `kept` are those it already has (annotation and volumes), `order` are the seed's zones in the order in which
/// they are taken.
///
/// # Errors
/// The seed has fewer zones than needed.
pub fn choose(failure_tolerance: &str, kept: &BTreeSet<String>, order: &[String]) -> Result<Vec<String>, String> {
    let needed = if failure_tolerance == "zone" { 3 } else { 1 };
    if order.len() < needed && !order.is_empty() || order.is_empty() && needed > 1 {
        return Err(format!(
            "cannot select {needed} zones for shoot because seed only specifies {} zones in its specification",
            order.len()
        ));
    }
    let mut chosen = kept.clone();
    for zone in order {
        if chosen.len() >= needed {
            break;
        }
        chosen.insert(zone.clone());
    }
    Ok(chosen.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cp_c16_zones() {
        let zones = |text: &str| -> Vec<String> {
            let all = text.split(',').filter(|one| !one.is_empty());
            all.map(str::to_owned).collect()
        };
        let table = [
            ("zone", "", "a,b,c", Ok("a,b,c")),
            ("", "b", "a,b,c", Ok("b")),
            ("", "", "c,a,b", Ok("c")),
            ("zone", "b,c", "c,a,b", Ok("a,b,c")),
            ("", "", "", Ok("")),
            (
                "zone",
                "",
                "a,b",
                Err("cannot select 3 zones for shoot because seed only specifies 2 zones in its specification"),
            ),
        ];
        for (tolerance, kept, order, expected) in table {
            let found = choose(tolerance, &zones(kept).into_iter().collect(), &zones(order));
            let found = found.map(|chosen| chosen.join(","));
            assert_eq!(found.as_deref().map_err(String::as_str), expected);
        }
    }
}
