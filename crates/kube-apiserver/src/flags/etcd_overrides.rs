//! `--etcd-servers-overrides`: which resources are kept in an etcd of their own.

use gardener_store::Topic;

/// What is wrong with the flag, in upstream's words.
const MALFORMED: &str = "--etcd-servers-overrides invalid, must be of format: group/resource#servers, where servers are URLs, semicolon separated";

/// Resources that are kept in an etcd of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdOverride {
    /// The resources.
    pub topics: Vec<Topic>,
    /// Client URLs of the etcd.
    pub servers: Vec<String>,
}

/// Reads the flag's values, such as `/events#https://events:2379;https://other:2379`. Those that name the same servers are one.
///
/// # Errors
/// One of them is none.
pub fn read(values: &[String]) -> Result<Vec<EtcdOverride>, &'static str> {
    let mut all: Vec<EtcdOverride> = Vec::new();
    for value in values {
        let (resource, servers) = value.split_once('#').ok_or(MALFORMED)?;
        let (group, resource) = resource.split_once('/').ok_or(MALFORMED)?;
        let mut servers: Vec<String> = servers.split(';').map(str::to_owned).collect();
        if resource.contains('/') || servers.iter().any(|server| server.is_empty() || server.contains('#')) {
            return Err(MALFORMED);
        }
        servers.sort();
        let topic = Topic::new(group, resource);
        match all.iter_mut().find(|known| known.servers == servers) {
            Some(known) => known.topics.push(topic),
            None => all.push(EtcdOverride {
                topics: vec![topic],
                servers,
            }),
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str]) -> Result<Vec<EtcdOverride>, &'static str> {
        super::read(&values.iter().map(|own| (*own).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn resources_of_the_same_servers_are_one() {
        let found = read(&[
            "/events#http://b;http://a",
            "apps/deployments#http://c",
            "coordination.k8s.io/leases#http://a;http://b",
        ]);
        let of = |topics: &[(&str, &str)], servers: &[&str]| EtcdOverride {
            topics: topics
                .iter()
                .map(|(group, resource)| Topic::new(group, resource))
                .collect(),
            servers: servers.iter().map(|own| (*own).to_owned()).collect(),
        };
        let expected = [
            of(
                &[("", "events"), ("coordination.k8s.io", "leases")],
                &["http://a", "http://b"],
            ),
            of(&[("apps", "deployments")], &["http://c"]),
        ];
        assert_eq!(found.as_deref(), Ok(expected.as_slice()));
        assert_eq!(read(&[]), Ok(Vec::new()));
    }

    #[test]
    fn what_is_none_is_told() {
        for wrong in [
            "",
            "events#http://a",
            "/events",
            "/events#",
            "/events#http://a;",
            "a/b/c#http://a",
            "/events#a#b",
        ] {
            assert_eq!(read(&[wrong]), Err(MALFORMED), "{wrong}");
        }
    }
}
