//! Command lines as upstream's programs read them: how flags are spelled, which are accepted without effect, and which are refused.

use std::collections::BTreeMap;

use clap::builder::{TypedValueParser, ValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use gardener_apimachinery::meta::parse_bool;

/// `true` and `false` in Go's spellings.
#[derive(Clone, Debug)]
pub struct Switch;

impl TypedValueParser for Switch {
    type Value = bool;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<bool, clap::Error> {
        match value.to_str().and_then(parse_bool) {
            Some(known) => Ok(known),
            None => clap::builder::BoolValueParser::new().parse_ref(command, argument, value),
        }
    }
}

/// Why the command line cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum FlagError {
    /// It asks for the version.
    #[error("{0}")]
    Version(String),
    /// It cannot be read, or it asks for help: the text says so, or is that.
    #[error(transparent)]
    Command(#[from] clap::Error),
    /// Flags that are missing or do not go together.
    #[error("{}", .0.join("; "))]
    Invalid(Vec<String>),
}

/// Upstream's flags that do nothing here.
#[derive(Clone, Copy, Debug)]
pub struct Others {
    /// Accepted without effect: true or false. Lists of them.
    pub switches: &'static [&'static [&'static str]],
    /// Accepted without effect: with a value. Lists of them.
    pub values: &'static [&'static [&'static str]],
    /// Not supported: what they ask for, clients or administrators would miss.
    pub refused: &'static [&'static str],
}

/// A command line that was read.
#[derive(Debug)]
pub struct Line<F> {
    /// The flags that do something.
    pub flags: F,
    /// Which flags were given that do nothing.
    pub idle: Vec<String>,
    /// All that do something, and others that were given, with their values in Go's spelling.
    pub values: BTreeMap<String, String>,
}

/// A program that takes upstream's flags.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// What `--version` prints.
    pub version: fn() -> String,
    /// Flags without effect.
    pub others: &'static Others,
}

impl Program {
    /// The command with the flags of `F`, and those without effect.
    pub fn command<F: Args>(&self) -> Command {
        let version = Arg::new("version").long("version").action(ArgAction::SetTrue);
        let command = Command::new(self.name)
            .arg(version.help("Print the version that is served"))
            .args_override_self(true)
            .help_template("{about}\n\nUsage: {usage}\n\n{all-args}\n");
        let command = F::augment_args(command);
        self.others.add(command).about(self.about).long_about(self.about)
    }

    /// Reads the arguments behind the program's name by the command that [`Program::command`] gave.
    ///
    /// # Errors
    /// [`FlagError`]; `check` tells what else is wrong with flags.
    pub fn parse<F: FromArgMatches>(
        &self,
        command: Command,
        arguments: impl IntoIterator<Item = String>,
        check: impl FnOnce(&F) -> Vec<String>,
    ) -> Result<Line<F>, FlagError> {
        let known: Vec<Arg> = command.get_arguments().cloned().collect();
        let files: Vec<String> = command
            .get_arguments()
            .filter(|own| names_file(own))
            .map(unset)
            .collect();
        let arguments = arguments
            .into_iter()
            .filter(|argument| !argument.is_empty())
            .map(normalized)
            .filter(|argument| !files.contains(argument));
        let matches = command.try_get_matches_from(std::iter::once(self.name.to_owned()).chain(arguments))?;
        if matches.get_flag("version") {
            return Err(FlagError::Version((self.version)()));
        }
        let flags = F::from_arg_matches(&matches)?;
        let mut errors = self.others.refusals(&matches);
        errors.extend(check(&flags));
        match errors.is_empty() {
            true => Ok(Line {
                flags,
                idle: self.others.given(&matches),
                values: known.iter().filter_map(|flag| self.value(flag, &matches)).collect(),
            }),
            false => Err(FlagError::Invalid(errors)),
        }
    }

    /// A flag and its value as Go spells it: lists in brackets. None for a flag without effect that was not given.
    fn value(&self, flag: &Arg, matches: &ArgMatches) -> Option<(String, String)> {
        let name = flag.get_long()?.to_owned();
        let id = flag.get_id().as_str();
        let is_idle = self.others.all().any(|own| own == name);
        if is_idle && matches.value_source(id) != Some(ValueSource::CommandLine) {
            return None;
        }
        let given = matches.get_raw(id).into_iter().flatten();
        let values: Vec<_> = given.map(|value| value.to_string_lossy()).collect();
        let value = match flag.get_action() {
            ArgAction::SetTrue => matches.get_flag(id).to_string(),
            _ if flag.get_value_parser().type_id() == ValueParser::bool().type_id() => {
                matches.get_one::<bool>(id).map(bool::to_string).unwrap_or_default()
            }
            ArgAction::Append if !is_idle && !NO_LISTS.contains(&name.as_str()) => format!("[{}]", values.join(",")),
            _ => values.join(","),
        };
        Some((name, value))
    }
}

/// Flags whose values are no lists to upstream, though some have commas.
const NO_LISTS: [&str; 2] = ["runtime-config", "service-cluster-ip-range"];

/// Whether a flag's value is the name of a file.
fn names_file(flag: &Arg) -> bool {
    flag.get_value_parser().type_id() == ValueParser::path_buf().type_id()
}

/// A flag with no value: no file is named then, as if it was not given.
fn unset(flag: &Arg) -> String {
    format!("--{}=", flag.get_long().unwrap_or_default())
}

/// `--etcd_servers` is `--etcd-servers`.
fn normalized(argument: String) -> String {
    match argument.strip_prefix("--") {
        Some(flag) => {
            let (name, value) = flag.split_at(flag.find('=').unwrap_or(flag.len()));
            format!("--{}{value}", name.replace('_', "-"))
        }
        None => argument,
    }
}

impl Others {
    /// Adds them all to a command.
    fn add(&self, command: Command) -> Command {
        let accepted = "Accepted without effect, for there is nothing here that they would change";
        let refused = "Known, but refused: what they ask for is not supported yet";
        let value = |name: &'static str| Arg::new(name).long(name).value_name("VALUE").action(ArgAction::Append);
        let switches = self.switches.iter().copied().flatten().map(|name| {
            let switch = value(name).num_args(0..=1).require_equals(true);
            switch.default_missing_value("true").help_heading(accepted)
        });
        let values = self.values.iter().copied().flatten();
        let values = values.map(|name| value(name).help_heading(accepted));
        let others = self.refused.iter().map(|name| value(name).help_heading(refused));
        command.args(switches).args(values).args(others)
    }

    /// Those that are accepted without effect.
    fn idle(&self) -> impl Iterator<Item = &'static str> {
        let lists = self.switches.iter().chain(self.values);
        lists.copied().flatten().copied()
    }

    /// All of them.
    fn all(&self) -> impl Iterator<Item = &'static str> {
        self.idle().chain(self.refused.iter().copied())
    }

    /// What to say of flags that were given, but are not supported. An empty value asks for nothing.
    fn refusals(&self, matches: &ArgMatches) -> Vec<String> {
        let given = |name: &str| {
            let values = matches.get_many::<String>(name);
            values.into_iter().flatten().any(|value| !value.is_empty())
        };
        let names = self.refused.iter().filter(|name| given(name));
        names
            .map(|name| format!("--{name} is not supported yet: leave it out"))
            .collect()
    }

    /// The flags that were given without effect.
    fn given(&self, matches: &ArgMatches) -> Vec<String> {
        let given = self
            .idle()
            .filter(|name| matches.value_source(name) == Some(ValueSource::CommandLine));
        given.map(|name| format!("--{name}")).collect()
    }
}

/// What to log, as `tracing` filters it, at upstream's verbosity.
pub fn log_level(verbosity: u8) -> &'static str {
    match verbosity {
        0 => "warn",
        1..=3 => "info",
        4..=7 => "debug",
        _ => "trace",
    }
}
