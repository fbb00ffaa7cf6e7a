//! Certificate signing requests of gardenlets in the garden: the shapes of a request for a client certificate `[AUTH-30]`, and what a bootstrap token
//! for a self-hosted shoot must say `[AUTH-31]`.

use std::collections::BTreeSet;

use gardener_apis::constants::group;

use super::Request;

/// What the names of seeds' gardenlets begin with; the seed's name follows.
pub const SEED_USER_PREFIX: &str = "gardener.cloud:system:seed:";
/// What the names of self-hosted shoots' gardenlets begin with; `<namespace>:<name>` follows.
pub const SHOOT_USER_PREFIX: &str = "gardener.cloud:system:shoot:";
/// What the names of gardenadm begin with, which connects a self-hosted shoot; `<namespace>:<name>` follows.
pub const GARDENADM_USER_PREFIX: &str = "gardener.cloud:gardenadm:shoot:";

/// What a client certificate is used for: no more and no less.
const USAGES: [&str; 3] = ["key encipherment", "digital signature", "client auth"];

/// The seed for whose gardenlet a client certificate is asked for.
///
/// # Errors
/// Why it is no such request.
pub fn seed_client(request: &Request) -> Result<&str, String> {
    organization(request, group::SEEDS)?;
    let seed = common_name(request, SEED_USER_PREFIX)?;
    shape(request)?;
    Ok(seed)
}

/// Namespace and name of the self-hosted shoot for whose gardenlet a client certificate is asked for.
///
/// # Errors
/// Why it is no such request.
pub fn shoot_client(request: &Request) -> Result<(&str, &str), String> {
    self_hosted(request, SHOOT_USER_PREFIX)
}

/// Namespace and name of the self-hosted shoot for whose gardenadm a client certificate is asked for.
///
/// # Errors
/// Why it is no such request.
pub fn gardenadm_client(request: &Request) -> Result<(&str, &str), String> {
    self_hosted(request, GARDENADM_USER_PREFIX)
}

fn self_hosted<'r>(request: &'r Request, prefix: &str) -> Result<(&'r str, &'r str), String> {
    organization(request, group::SHOOTS)?;
    let rest = common_name(request, prefix)?;
    let parts: Vec<&str> = rest.split(':').collect();
    let [namespace, name] = parts.as_slice() else {
        return Err(structure(prefix));
    };
    if namespace.is_empty() || name.is_empty() {
        return Err(structure(prefix));
    }
    shape(request)?;
    Ok((namespace, name))
}

fn structure(prefix: &str) -> String {
    format!("subject's common name must follow this structure: \"{prefix}<namespace>:<name>\"")
}

fn organization(request: &Request, group: &str) -> Result<(), String> {
    match request.organizations.as_slice() {
        [own] if own == group => Ok(()),
        _ => Err(format!("subject's organization is not set to [{group}]")),
    }
}

fn common_name<'r>(request: &'r Request, prefix: &str) -> Result<&'r str, String> {
    let rest = request.common_name.strip_prefix(prefix);
    rest.ok_or_else(|| format!("subject's common name does not start with \"{prefix}\""))
}

fn shape(request: &Request) -> Result<(), String> {
    if !request.dns_names.is_empty() || !request.email_addresses.is_empty() || !request.ip_addresses.is_empty() {
        return Err("DNSNames, EmailAddresses and IPAddresses fields must be empty".to_owned());
    }
    let usages: BTreeSet<&str> = request.usages.iter().map(String::as_str).collect();
    if usages != BTreeSet::from(USAGES) {
        return Err(format!("key usages are not set to [{}]", USAGES.join(" ")));
    }
    Ok(())
}

/// Whether a request is for the shoot that its bootstrap token is for.
///
/// # Errors
/// Why not.
pub fn matches_token(request: &Request, (namespace, name): (&str, &str)) -> Result<(), String> {
    let own = |prefix: &&str| request.common_name == format!("{prefix}{namespace}:{name}");
    if [SHOOT_USER_PREFIX, GARDENADM_USER_PREFIX].iter().any(own) {
        return Ok(());
    }
    Err(format!(
        "the common name in the certificate request ({}) does not match the expected format \
         'gardener.cloud:{{system,gardenadm}}:shoot:<namespace>:<name>'",
        request.common_name
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(organization: &str, common_name: &str) -> Request {
        Request {
            common_name: common_name.into(),
            organizations: vec![organization.into()],
            usages: USAGES.map(str::to_owned).into(),
            ..Request::default()
        }
    }

    #[test]
    fn auth_30_the_shapes_of_gardenlets_requests() {
        let seed = || request(group::SEEDS, "gardener.cloud:system:seed:a");
        assert_eq!(seed_client(&seed()), Ok("a"));
        type Change = fn(&mut Request);
        let cases: [(Change, &str); 7] = [
            (
                |request| request.organizations.push("system:masters".into()),
                "subject's organization is not set to [gardener.cloud:system:seeds]",
            ),
            (
                |request| request.organizations.clear(),
                "subject's organization is not set to [gardener.cloud:system:seeds]",
            ),
            (
                |request| request.common_name = "jane".into(),
                r#"subject's common name does not start with "gardener.cloud:system:seed:""#,
            ),
            (
                |request| request.dns_names.push("a".into()),
                "DNSNames, EmailAddresses and IPAddresses fields must be empty",
            ),
            (
                |request| request.email_addresses.push("a@b".into()),
                "DNSNames, EmailAddresses and IPAddresses fields must be empty",
            ),
            (
                |request| request.usages.push("server auth".into()),
                "key usages are not set to [key encipherment digital signature client auth]",
            ),
            (
                |request| drop(request.usages.pop()),
                "key usages are not set to [key encipherment digital signature client auth]",
            ),
        ];
        for (change, why) in cases {
            let mut request = seed();
            change(&mut request);
            assert_eq!(seed_client(&request), Err(why.to_owned()));
        }
        let shoot = request(group::SHOOTS, "gardener.cloud:system:shoot:garden-dev:a");
        assert_eq!(shoot_client(&shoot), Ok(("garden-dev", "a")));
        assert!(seed_client(&shoot).is_err() && gardenadm_client(&shoot).is_err());
        let adm = request(group::SHOOTS, "gardener.cloud:gardenadm:shoot:garden-dev:a");
        assert_eq!(gardenadm_client(&adm), Ok(("garden-dev", "a")));
        for rest in ["a", "garden-dev:a:b", ":a", "garden-dev:", ""] {
            let shoot = request(group::SHOOTS, &format!("{SHOOT_USER_PREFIX}{rest}"));
            assert_eq!(
                shoot_client(&shoot),
                Err(r#"subject's common name must follow this structure: "gardener.cloud:system:shoot:<namespace>:<name>""#.to_owned()),
                "{rest}"
            );
        }
    }

    #[test]
    fn auth_31_tokens_are_for_one_shoot() {
        let shoot = request(group::SHOOTS, "gardener.cloud:gardenadm:shoot:garden-dev:a");
        assert_eq!(matches_token(&shoot, ("garden-dev", "a")), Ok(()));
        assert_eq!(
            matches_token(&shoot, ("garden-dev", "b")).unwrap_err(),
            "the common name in the certificate request (gardener.cloud:gardenadm:shoot:garden-dev:a) does not match the expected format \
             'gardener.cloud:{system,gardenadm}:shoot:<namespace>:<name>'"
        );
    }
}
