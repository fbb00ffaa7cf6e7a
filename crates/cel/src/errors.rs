//! Messages about expressions, shown with the place in the source as cel-go does.

/// One finding in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Position in characters.
    pub(crate) at: usize,
    pub(crate) message: String,
}

impl Finding {
    pub(crate) fn new(at: usize, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
        }
    }

    pub(crate) fn syntax(at: usize, message: impl std::fmt::Display) -> Self {
        Self::new(at, format!("Syntax error: {message}"))
    }
}

/// How many findings of one source are told. Each repeats its line of the source.
const MOST: usize = 100;

/// All findings, in order of their places.
pub(crate) fn shown(source: &str, mut findings: Vec<Finding>) -> String {
    findings.sort_by_key(|finding| finding.at);
    let lines: Vec<&str> = source.split('\n').collect();
    let one = |finding: &Finding| {
        if source.is_empty() {
            // there is no place to show
            return format!("ERROR: <input>:1:0: {}", finding.message);
        }
        let (mut line, mut column) = (0, finding.at);
        while let Some(length) = lines.get(line).map(|line| line.chars().count()) {
            if column <= length || line + 1 == lines.len() {
                break;
            }
            column -= length + 1;
            line += 1;
        }
        let text = lines.get(line).copied().unwrap_or_default().replace('\t', " ");
        format!(
            "ERROR: <input>:{}:{}: {}\n | {text}\n | {}",
            line + 1,
            column + 1,
            finding.message,
            marks(&text, column)
        )
    };
    let mut told: Vec<String> = findings.iter().take(MOST).map(one).collect();
    if findings.len() > MOST {
        // cel-go counts no further than to the first that it does not tell
        told.push("1 more errors were truncated".to_owned());
    }
    told.join("\n")
}

/// What points at a place in a line. Characters that are no ASCII are taken for wide ones.
fn marks(line: &str, column: usize) -> String {
    let dot = |c: char| if c.is_ascii() { '.' } else { '\u{ff0e}' };
    let dots: String = line.chars().take(column).map(dot).collect();
    let at = line.chars().nth(column);
    let arrow = if at.is_none_or(|c| c.is_ascii()) {
        '^'
    } else {
        '\u{ff3e}'
    };
    format!("{dots}{arrow}")
}
