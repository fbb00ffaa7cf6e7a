//! Numbers with a point as Go writes them.

/// From which power of ten on a number has an exponent.
const LARGE: i32 = 6;
/// Below which power of ten a number has one.
const SMALL: i32 = -4;

/// The fewest digits that tell a number from all others; with an exponent where it is very small or large.
pub(super) fn shortest(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(power) if !(SMALL..LARGE).contains(&power) => {
            let sign = if power < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", power.abs())
        }
        _ => value.to_string(),
    }
}
