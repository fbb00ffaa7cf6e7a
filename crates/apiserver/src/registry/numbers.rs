//! Numbers of custom resources, which no Go type gives a meaning: as upstream reads them, and as it writes them.

use serde_json::Value;

/// Makes floating ones of whole numbers that no 64 bits hold. Those written like `2.0` are floating ones already, and stay so until they are
/// stored: to bounds and rules they are another thing than `2`.
pub(super) fn read(value: &mut Value) {
    change(value, &|number| {
        let is_beyond = number.is_u64() && !number.is_i64();
        number.as_f64().filter(|_| is_beyond).map(Value::from)
    });
}

/// Makes whole ones of floating numbers where their text has no point.
pub(super) fn write(value: &mut Value) {
    change(value, &|number| {
        let float = number.as_f64().filter(|_| number.is_f64())?;
        // the digits are the shortest that stand for the number, with zeros behind them
        let text = (float + 0.0).to_string();
        text.parse::<i64>()
            .map(Value::from)
            .or_else(|_| text.parse::<u64>().map(Value::from))
            .ok()
    });
}

fn change(value: &mut Value, make: &impl Fn(&serde_json::Number) -> Option<Value>) {
    match value {
        Value::Object(members) => members.values_mut().for_each(|value| change(value, make)),
        Value::Array(elements) => elements.iter_mut().for_each(|value| change(value, make)),
        Value::Number(number) => {
            if let Some(other) = make(number) {
                *value = other;
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_written_without_a_point_where_they_need_none() {
        let told = r#"{"a": [1.0, -0.0, 1e3, 2.5, 9223372036854775808, 1e19, 1e22, 7, "1.0"], "b": {"c": -9223372036854775809}}"#;
        let mut value: Value = serde_json::from_str(told).unwrap();
        read(&mut value);
        assert_eq!(value["a"][4], json!(9.223_372_036_854_776e18));
        assert_eq!(value["a"][0], json!(1.0), "it stays what it is until it is stored");
        write(&mut value);
        assert_eq!(
            value,
            json!({"a": [1, 0, 1000, 2.5, 9_223_372_036_854_776_000_u64, 10_000_000_000_000_000_000_u64, 1e22, 7, "1.0"], "b": {"c": -9.223_372_036_854_776e18}})
        );
    }
}
