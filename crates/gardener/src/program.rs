//! How this program is called from a shell: what commands that we tell people to type begin with. A clone that ran `cargo run` has no `gardener` on its PATH.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// What to type to call this program again: `gardener` where PATH leads here, else its path.
pub(crate) fn name() -> String {
    let own = env::current_exe().ok();
    let named = own.map(|own| {
        let folder = env::current_dir().unwrap_or_default();
        called(&own, &folder, env::var_os("PATH").as_deref(), |path| {
            path.canonicalize().ok()
        })
    });
    named.unwrap_or_else(|| "gardener".to_owned())
}

/// A path as a word of a shell's command line.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |letter: char| letter.is_alphanumeric() || "/._-+=:@%,".contains(letter);
    match !text.is_empty() && text.chars().all(plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// `real` follows links; none where there is no file.
fn called(own: &Path, folder: &Path, path: Option<&OsStr>, real: impl Fn(&Path) -> Option<PathBuf>) -> String {
    let mut folders = path.map(env::split_paths).into_iter().flatten();
    let first = folders.find_map(|folder| real(&folder.join("gardener")));
    if first.is_some() && first == real(own) {
        return "gardener".to_owned();
    }
    match own.strip_prefix(folder) {
        // without a slash the shell would look on PATH
        Ok(below) if below.components().count() > 1 => quoted(below),
        Ok(below) => quoted(&Path::new(".").join(below)),
        Err(_) => quoted(own),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_what_their_shell_finds() {
        let own = Path::new("/src/clone/target/release/gardener");
        let linked = |path: &Path| match path.to_str() {
            Some("/bin/gardener" | "/src/clone/target/release/gardener") => Some(own.to_owned()),
            Some("/old/gardener") => Some(path.to_owned()),
            _ => None,
        };
        let table = [
            ("/src/clone", "/usr/bin", "target/release/gardener"),
            ("/src/clone/target/release", "", "./gardener"),
            ("/home", "/usr/bin:/bin", "gardener"),
            ("/home", "/old:/bin", "/src/clone/target/release/gardener"),
        ];
        for (folder, path, wanted) in table {
            let name = called(own, Path::new(folder), Some(OsStr::new(path)), linked);
            assert_eq!(name, wanted, "in {folder} with PATH {path}");
        }
        assert_eq!(quoted(Path::new("/my data/it's")), r"'/my data/it'\''s'");
    }
}
