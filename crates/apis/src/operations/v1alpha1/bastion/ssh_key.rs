//! Public keys as OpenSSH's `authorized_keys` has them, read as Go's `ssh.ParseAuthorizedKey` does. Whether a point lies on its curve, and what is in a
//! certificate, is not looked at.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Bytes of an Ed25519 key.
const ED25519: usize = 32;
/// The most bits of an RSA modulus, and of an exponent.
const RSA_MAX: (usize, usize) = (16384, 24);
/// Curves, and the bytes of a coordinate on them.
const CURVES: [(&str, usize); 3] = [("nistp256", 32), ("nistp384", 48), ("nistp521", 66)];

/// Whether a text has a key in one of its lines: its type, the key in base64, perhaps options before and a comment behind.
pub(super) fn is_authorized_key(text: &str) -> bool {
    text.split('\n').any(|line| {
        let line = line.split('\r').next().unwrap_or_default().trim();
        !line.starts_with('#') && (is_key(line) || behind_options(line).is_some_and(is_key))
    })
}

/// What follows the options of a line: the first word, in which quoted parts may have spaces.
fn behind_options(line: &str) -> Option<&str> {
    let (mut quoted, mut before) = (false, '\0');
    for (at, letter) in line.char_indices() {
        match letter {
            ' ' | '\t' if !quoted => return Some(line.get(at..)?.trim_start_matches([' ', '\t'])),
            '"' if before != '\\' => quoted = !quoted,
            _ => {}
        }
        before = letter;
    }
    None
}

/// `<type> <base64> [<comment>]`, where the key is of that type.
fn is_key(line: &str) -> bool {
    let Some((kind, rest)) = line.split_once([' ', '\t']) else {
        return false;
    };
    let body = rest.trim_start().split([' ', '\t']).next().unwrap_or_default();
    let Ok(body) = STANDARD.decode(body) else { return false };
    let mut wire = Wire(&body);
    wire.text() == Some(kind.as_bytes()) && is_key_of(kind, &mut wire).is_some_and(|fits| fits)
}

fn is_key_of(kind: &str, wire: &mut Wire<'_>) -> Option<bool> {
    let fits = match kind {
        "ssh-rsa" => {
            let (exponent, modulus) = (wire.number()?, wire.number()?);
            let is_odd = exponent.last().is_some_and(|last| last % 2 == 1);
            is_odd && exponent != [1] && bits(exponent) <= RSA_MAX.1 && bits(modulus) <= RSA_MAX.0
        }
        "ssh-dss" => (0..4).all(|_| wire.number().is_some()),
        "ssh-ed25519" => wire.text()?.len() == ED25519,
        "sk-ssh-ed25519@openssh.com" => {
            let key = wire.text()?;
            wire.text()?;
            key.len() == ED25519
        }
        "sk-ecdsa-sha2-nistp256@openssh.com" => {
            let (curve, point) = (wire.text()?, wire.text()?);
            wire.text()?;
            curve == b"nistp256" && is_point(curve, point)
        }
        _ => match kind.strip_prefix("ecdsa-sha2-") {
            Some(curve) if CURVES.iter().any(|(name, _)| *name == curve) => {
                let (own, point) = (wire.text()?, wire.text()?);
                own == curve.as_bytes() && is_point(own, point)
            }
            // what a certificate says is its reader's business
            _ => return Some(kind.ends_with("-cert-v01@openssh.com") && !wire.0.is_empty()),
        },
    };
    Some(fits && wire.0.is_empty())
}

fn is_point(curve: &[u8], point: &[u8]) -> bool {
    let known = CURVES.iter().find(|(name, _)| name.as_bytes() == curve);
    known.is_some_and(|(_, bytes)| point.len() == 1 + 2 * bytes && point.first() == Some(&4))
}

/// Bits of a number without zeroes in front.
fn bits(number: &[u8]) -> usize {
    let first = number.first().map_or(0, |first| first.leading_zeros() as usize);
    number.len() * 8 - first
}

/// What is left of a key in SSH's wire format.
struct Wire<'a>(&'a [u8]);

impl<'a> Wire<'a> {
    /// The next piece, with its length in front.
    fn text(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.0.split_first_chunk::<4>()?;
        let (piece, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
        self.0 = rest;
        Some(piece)
    }

    /// The next number, without zeroes in front; not one below zero.
    fn number(&mut self) -> Option<&'a [u8]> {
        let piece = self.text()?;
        let is_negative = piece.first().is_some_and(|first| first & 0x80 != 0);
        let zeroes = piece.iter().take_while(|byte| **byte == 0).count();
        piece.get(zeroes..).filter(|_| !is_negative)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ED: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOtPn9OLsSAbv2BI/keck83ql19gEhaoHIeZVwm0q9Gw";

    /// A key of pieces.
    fn key(pieces: &[&[u8]]) -> String {
        let mut wire = Vec::new();
        for piece in pieces {
            wire.extend((piece.len() as u32).to_be_bytes());
            wire.extend(*piece);
        }
        STANDARD.encode(wire)
    }

    #[test]
    fn keys_are_read() {
        let modulus = [0x7f_u8; 256];
        let rsa = |exponent: &[u8]| format!("ssh-rsa {}", key(&[b"ssh-rsa", exponent, &modulus]));
        let point = [&[4_u8][..], &[1; 64]].concat();
        let ecdsa = key(&[b"ecdsa-sha2-nistp256", b"nistp256", &point]);
        for text in [
            ED.to_owned(),
            format!("{ED} user@host with a comment"),
            format!("# mine\n\n{ED}\n"),
            format!("restrict,command=\"echo \\\"a b\\\"\" {ED}"),
            rsa(&[1, 0, 1]),
            format!("ecdsa-sha2-nistp256 {ecdsa}"),
        ] {
            assert!(is_authorized_key(&text), "{text}");
        }
        for text in [
            "",
            "not a key",
            "ssh-rsa",
            "ssh-rsa AAAA",
            "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAB",
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOtPn9OLsSAbv2BI/keck83ql19gEhaoHIeZVwm0q9G",
            "ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIOtPn9OLsSAbv2BI/keck83ql19gEhaoHIeZVwm0q9Gw",
            "#ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOtPn9OLsSAbv2BI/keck83ql19gEhaoHIeZVwm0q9Gw",
            &rsa(&[1]),
            &rsa(&[2]),
            &format!("ecdsa-sha2-nistp384 {ecdsa}"),
            &format!("ssh-ed25519 {}", key(&[b"ssh-ed25519", &[0; 32], b"more"])),
        ] {
            assert!(!is_authorized_key(text), "{text}");
        }
    }
}
