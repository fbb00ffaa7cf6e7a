//! The cluster IPs and ports of nodes that services get, from pkg/registry/core/service of Kubernetes: which are free, and which may be asked for.

use std::cell::{Cell, OnceCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::sync::Arc;

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, Path};
use gardener_apimachinery::pointer::Pointed;
use ipnet::IpNet;
use serde_json::{Value, json};

use super::{checks_health, families, has_node_ports};
use crate::definition::{Companion, Context};
use crate::kubernetes::checks::{number, spec_of, text};
use crate::meta;

/// Where cluster IPs come from where nobody says it.
const DEFAULT_RANGE: &str = "10.0.0.0/24";
const TAKEN_PORT: &str = "provided port is already allocated";

/// What cluster IPs come from.
struct Ranges {
    /// The families of the cluster's ServiceCIDR `kubernetes`, or of upstream's default: services have no others.
    families: Vec<&'static str>,
    /// The ranges of all ServiceCIDRs that are ready, those of `kubernetes` first.
    all: Vec<IpNet>,
}

impl Ranges {
    fn of_cluster(context: &Context<'_>) -> Self {
        let mut cidrs = context.lister.list("networking.k8s.io", "servicecidrs", None);
        cidrs.sort_by_key(|cidr| meta::name(cidr) != "kubernetes");
        let own = cidrs.first().filter(|cidr| meta::name(cidr) == "kubernetes");
        let mut families: Vec<_> = own
            .iter()
            .flat_map(|cidr| ranges_of(cidr))
            .map(|range| family_of(&range))
            .collect();
        let ready = cidrs.iter().filter(|cidr| is_ready(cidr));
        let mut all: Vec<IpNet> = ready.flat_map(|cidr| ranges_of(cidr)).collect();
        if families.is_empty() {
            let default = DEFAULT_RANGE.parse::<IpNet>();
            families.extend(default.iter().map(family_of));
            all.extend(default);
        }
        Self { families, all }
    }

    fn of_family(&self, family: &str) -> impl Iterator<Item = &IpNet> {
        self.all.iter().filter(move |range| family_of(range) == family)
    }
}

fn ranges_of(cidr: &Value) -> impl Iterator<Item = IpNet> {
    let ranges = meta::elements(cidr, "/spec/cidrs").iter().filter_map(Value::as_str);
    ranges.filter_map(|range| range.parse().ok())
}

/// Whether a ServiceCIDR gives addresses. Where nobody tells its conditions, it does.
fn is_ready(cidr: &Value) -> bool {
    let mut conditions = meta::elements(cidr, "/status/conditions").iter();
    let ready = conditions.find(|condition| text(condition, "type") == "Ready");
    !meta::is_deleting(cidr) && ready.is_none_or(|condition| text(condition, "status") == "True")
}

fn family_of(range: &IpNet) -> &'static str {
    address_family(range.addr())
}

/// The family of an address.
pub fn address_family(address: IpAddr) -> &'static str {
    match address {
        IpAddr::V4(_) => "IPv4",
        IpAddr::V6(_) => "IPv6",
    }
}

/// The label of IPAddresses that tells who made them, and what it says of those that services have.
pub const MADE_FOR_SERVICES: (&str, &str) = ("ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io");

/// The labels of an IPAddress that a service has.
pub fn ip_address_labels(address: IpAddr) -> [(&'static str, &'static str); 2] {
    let family = ("ipaddress.kubernetes.io/ip-family", address_family(address));
    [family, MADE_FOR_SERVICES]
}

/// The IPAddresses that a service has, one for each cluster IP.
pub(super) fn ip_addresses(service: &Value) -> Vec<Companion> {
    let parent = json!({"resource": "services", "namespace": meta::namespace(service), "name": meta::name(service)});
    let addresses = addresses_of(service).into_iter();
    addresses
        .filter_map(|address| address.parse::<IpAddr>().ok())
        .map(|address| Companion {
            group: "networking.k8s.io",
            resource: "ipaddresses",
            object: json!({
                "metadata": {
                    "name": address.to_string(),
                    "labels": BTreeMap::from(ip_address_labels(address)),
                },
                "spec": {"parentRef": parent},
            }),
        })
        .collect()
}

/// Gives a service the cluster IPs and ports of nodes that it lacks, and refuses those that it asks for and may not have.
pub(super) fn allocate(context: &Context<'_>, service: &mut Value, old: Option<&Value>) -> Result<(), ApiError> {
    if families::kind(service) == "ExternalName" {
        return Ok(());
    }
    allocate_addresses(context, service, old)?;
    allocate_ports(context, service, old)
}

fn allocate_addresses(context: &Context<'_>, service: &mut Value, old: Option<&Value>) -> Result<(), ApiError> {
    let name = meta::name(service).to_owned();
    let ranges = Ranges::of_cluster(context);
    if let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) {
        families::follow_address(spec, old);
        families::choose(spec, old, &ranges.families)
            .map_err(|errors| ApiError::invalid("", "Service", &name, &errors))?;
    }
    let mut addresses = addresses_of(service);
    if meta::text(service, "/spec/clusterIP") != "None" {
        let used = Used::of(context, ranges.families.len() > 1);
        check_addresses(service, old, |asked| {
            why_not(asked, &ranges, context.dry_run, |asked| used.contains(asked))
        })?;
        let families = meta::elements(service, "/spec/ipFamilies")
            .iter()
            .filter_map(Value::as_str);
        for family in families.skip(addresses.len()) {
            let mut of_family = ranges.of_family(family);
            let free = match context.dry_run {
                // what is only tried takes no address, and upstream shows this one
                true => of_family.next().map(|range| range.network().to_string()),
                false => of_family.find_map(|range| free_address(context, range, &used)),
            };
            addresses.push(free.ok_or_else(|| {
                ApiError::internal(format!(
                    "failed to allocate a serviceIP for Service {name:?}: range is full"
                ))
            })?);
        }
    }
    if let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) {
        if let Some(first) = addresses.first() {
            spec.insert("clusterIP".into(), first.as_str().into());
        }
        spec.insert("clusterIPs".into(), json!(addresses));
    }
    Ok(())
}

fn allocate_ports(context: &Context<'_>, service: &mut Value, old: Option<&Value>) -> Result<(), ApiError> {
    let of_balancer = service.at("/spec/allocateLoadBalancerNodePorts") != Some(&Value::Bool(false));
    let has_some = match families::kind(service) {
        "NodePort" => true,
        "LoadBalancer" => of_balancer,
        _ => false,
    };
    let wants_some = has_some && lacks_node_ports(service);
    let names_some = named_node_ports(service).any(|port| port != 0);
    let kept_health_port = old.and_then(health_port).filter(|port| *port != 0);
    let asked_health_port = health_port(service);
    if !(names_some || wants_some || asked_health_port.is_some() && kept_health_port.is_none()) {
        return Ok(());
    }
    let mut ports = PortOperation::of(context, service, old);
    if has_node_ports(service) {
        match old {
            None => take_new_ports(&mut ports, service, has_some)?,
            Some(old) => take_changed_ports(&mut ports, service, old, has_some)?,
        }
    }
    match (asked_health_port, kept_health_port) {
        (Some(0), Some(kept)) => set_health_port(service, kept),
        (Some(asked), None) => take_health_port(&mut ports, service, asked)?,
        // another one than it had is a matter of validation
        (Some(_), Some(_)) | (None, _) => {}
    }
    Ok(())
}

/// Takes ports of nodes for one service.
struct PortOperation {
    /// Those that somebody has, this service before its change too.
    taken: BTreeSet<i64>,
    /// Those that the service names, which are given to no other of its ports.
    named: BTreeSet<i64>,
    /// Those that were taken so far.
    own: BTreeSet<i64>,
    /// Whether nothing is kept. Upstream then looks at no range, and gives what lies beyond it.
    is_tried: bool,
    range: RangeInclusive<u16>,
    chance: u64,
}

impl PortOperation {
    fn of(context: &Context<'_>, service: &Value, old: Option<&Value>) -> Self {
        let others = others_of(context, service);
        let others = others.iter().map(|other| &**other).chain(old);
        Self {
            taken: others.flat_map(node_ports_of).collect(),
            named: named_node_ports(service).collect(),
            own: BTreeSet::new(),
            is_tried: context.dry_run,
            range: context.lister.node_ports(),
            chance: context.chance,
        }
    }

    /// Takes the port that is asked for, or says why it may not be had.
    fn take(&mut self, number: i64) -> Result<(), String> {
        let is_inside = u16::try_from(number).is_ok_and(|number| self.range.contains(&number));
        if !self.is_tried && !is_inside {
            let (first, last) = (self.range.start(), self.range.end());
            return Err(format!(
                "provided port is not in the valid range. The range of valid ports is {first}-{last}"
            ));
        }
        match !self.taken.contains(&number) && self.own.insert(number) {
            true => Ok(()),
            false => Err(TAKEN_PORT.to_owned()),
        }
    }

    /// Takes the port that is asked for by one of a service's ports.
    fn take_of(&mut self, service: &Value, index: usize, number: i64) -> Result<(), ApiError> {
        self.take(number).map_err(|why| {
            let at = Path::new("spec").child("ports").index(index).child("nodePort");
            let error = Error::invalid(&at, number, why);
            ApiError::invalid("", "Service", meta::name(service), &[error])
        })
    }

    /// Takes any port.
    fn take_any(&mut self) -> Result<i64, ApiError> {
        let found = match self.is_tried {
            true => Some(self.own.last().map_or(i64::from(*self.range.end()) + 1, |last| *last) + 1),
            false => node_ports(&self.range, self.chance)
                .find(|port| !self.taken.contains(port) && !self.own.contains(port) && !self.named.contains(port)),
        };
        let found = found.ok_or_else(|| ApiError::internal("failed to allocate a nodePort: range is full"))?;
        self.own.insert(found);
        Ok(found)
    }
}

/// The port of nodes that a service's port has.
fn node_port(service: &Value, index: usize) -> i64 {
    let port = meta::elements(service, "/spec/ports").get(index);
    port.and_then(|port| number(port, "nodePort")).unwrap_or(0)
}

fn set_node_port(service: &mut Value, index: usize, number: i64) {
    let ports = service.at_mut("/spec/ports").and_then(Value::as_array_mut);
    let port = ports.and_then(|ports| ports.get_mut(index));
    if let Some(port) = port.and_then(Value::as_object_mut) {
        port.insert("nodePort".to_owned(), json!(number));
    }
}

/// The ports of nodes of a new service. Those of its ports that differ in their protocol only share one.
fn take_new_ports(ports: &mut PortOperation, service: &mut Value, gives: bool) -> Result<(), ApiError> {
    let mut shared: BTreeMap<i64, i64> = BTreeMap::new();
    let own: Vec<i64> = meta::elements(service, "/spec/ports")
        .iter()
        .map(|port| number(port, "port").unwrap_or(0))
        .collect();
    for (index, port) in own.iter().enumerate() {
        let asked = node_port(service, index);
        if asked == 0 && !gives {
            continue;
        }
        match shared.get(port) {
            Some(known) if asked == 0 => set_node_port(service, index, *known),
            Some(known) if asked == *known => {}
            Some(_) => ports.take_of(service, index, asked)?,
            None => {
                let of_same = (0..own.len()).filter(|other| own.get(*other) == Some(port));
                let asked = of_same.map(|other| node_port(service, other)).find(|asked| *asked != 0);
                let found = match asked {
                    Some(asked) => ports.take_of(service, index, asked).map(|()| asked)?,
                    None => ports.take_any()?,
                };
                set_node_port(service, index, found);
                shared.insert(*port, found);
            }
        }
    }
    Ok(())
}

/// Those of a changed service: ports without one get what ports of their names had.
fn take_changed_ports(
    ports: &mut PortOperation,
    service: &mut Value,
    old: &Value,
    gives: bool,
) -> Result<(), ApiError> {
    let old_ports = match has_node_ports(old) {
        true => meta::elements(old, "/spec/ports"),
        false => &[],
    };
    let kept: BTreeSet<i64> = named_node_ports(old).collect();
    let names: Vec<(String, String)> = meta::elements(service, "/spec/ports")
        .iter()
        .map(|port| (text(port, "name").to_owned(), text(port, "protocol").to_owned()))
        .collect();
    let mut seen = BTreeSet::new();
    for (index, (name, protocol)) in names.iter().enumerate() {
        let mut asked = node_port(service, index);
        if asked == 0 && !gives {
            continue;
        }
        if asked == 0 {
            let of_name = old_ports.iter().rfind(|other| text(other, "name") == name);
            let had = of_name.and_then(|other| number(other, "nodePort"));
            let had = had.filter(|had| *had != 0 && !ports.named.contains(had));
            asked = match had {
                Some(had) => had,
                None => ports.take_any()?,
            };
            set_node_port(service, index, asked);
        } else if !kept.contains(&asked) && !ports.own.contains(&asked) {
            ports.take_of(service, index, asked)?;
        }
        if !seen.insert((protocol, asked)) {
            return Err(ApiError::unclassified(format!(
                "duplicate nodePort: {{{protocol} {asked}}}"
            )));
        }
    }
    Ok(())
}

/// The port of nodes by which a balancer sees whether a node has pods of the service: zero, if any will do; none, if the service needs none.
pub(super) fn health_port(service: &Value) -> Option<i64> {
    let asked = || service.at("/spec/healthCheckNodePort").and_then(Value::as_i64);
    checks_health(spec_of(service)).then(|| asked().unwrap_or(0))
}

/// All ports of nodes, in the order in which they are given.
fn node_ports(range: &RangeInclusive<u16>, chance: u64) -> impl Iterator<Item = i64> {
    let first = i64::from(*range.start());
    let size = u128::try_from(range.len()).unwrap_or_default();
    let offsets = offsets(size, by_hand(size, 32, 128), chance);
    offsets.filter_map(move |offset| Some(first + i64::try_from(offset).ok()?))
}

/// Gives a service the port of nodes that [`health_port`] tells.
fn take_health_port(ports: &mut PortOperation, service: &mut Value, asked: i64) -> Result<(), ApiError> {
    let port = match asked {
        0 => ports.take_any()?,
        asked => ports.take(asked).map(|()| asked).map_err(|why| {
            ApiError::internal(format!(
                "failed to allocate requested HealthCheck NodePort {asked}: {why}"
            ))
        })?,
    };
    set_health_port(service, port);
    Ok(())
}

fn set_health_port(service: &mut Value, port: i64) {
    if let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("healthCheckNodePort".to_owned(), json!(port));
    }
}

/// The addresses that somebody has: those of IPAddresses, and the cluster IPs of services that have none, for another server made them.
struct Used<'c> {
    context: &'c Context<'c>,
    /// Only then services have more addresses than one.
    has_two_families: bool,
    /// How many addresses were asked for one by one.
    asked: Cell<usize>,
    all: OnceCell<BTreeSet<String>>,
}

impl<'c> Used<'c> {
    /// So many addresses are looked for one by one. Whoever asks for more has a range that is nearly full, and gathers all that are used.
    const FEW: usize = 8;

    fn of(context: &'c Context<'c>, has_two_families: bool) -> Self {
        Self {
            context,
            has_two_families,
            asked: Cell::new(0),
            all: OnceCell::new(),
        }
    }

    fn contains(&self, address: &str) -> bool {
        self.asked.set(self.asked.get() + 1);
        if self.has_two_families || self.asked.get() > Self::FEW {
            return self.all.get_or_init(|| self.gathered()).contains(address);
        }
        let Context { lister, .. } = self.context;
        lister.get("networking.k8s.io", "ipaddresses", "", address).is_some()
            || !lister.with_field("", "services", "spec.clusterIP", address).is_empty()
    }

    fn gathered(&self) -> BTreeSet<String> {
        let Context { lister, .. } = self.context;
        let named = lister.field_values("networking.k8s.io", "ipaddresses", "metadata.name");
        let of_services = lister.field_values("", "services", "spec.clusterIP");
        let mut used: BTreeSet<String> = named.into_iter().chain(of_services).collect();
        if self.has_two_families {
            let services = lister.list("", "services", None);
            used.extend(services.iter().flat_map(|service| addresses_of(service)));
        }
        used
    }
}

/// A service's cluster IPs.
fn addresses_of(service: &Value) -> Vec<String> {
    let spec = service.get("spec").and_then(Value::as_object);
    spec.map_or_else(Vec::new, |spec| families::texts(spec, "clusterIPs"))
}

/// An address in the one way of several in which IPAddresses are named by it; none for what is no address.
fn canonical(address: &str) -> Option<String> {
    Some(address.parse::<IpAddr>().ok()?.to_string())
}

/// Where an address lies, seen from a range of cluster IPs.
enum Place {
    Inside,
    /// It means the network, or all of it: no service may have it.
    Edge,
    Outside,
}

fn within(address: IpAddr, range: &IpNet) -> Place {
    let is_edge = address == range.network() || address.is_ipv4() && address == range.broadcast();
    match range.contains(&address) {
        true if is_edge => Place::Edge,
        true => Place::Inside,
        false => Place::Outside,
    }
}

/// Whether services may have an address of a range: not the network's own, and of IPv4 not that of all in it.
pub fn gives_address(range: &IpNet, address: IpAddr) -> bool {
    matches!(within(address, range), Place::Inside)
}

/// Why a service may not have an address.
fn why_not(asked: &str, ranges: &Ranges, is_tried: bool, is_used: impl Fn(&str) -> bool) -> Option<String> {
    let mut of_family = ranges.of_family(families::family(asked));
    let is_inside = |range: &IpNet| asked.parse().is_ok_and(|address| gives_address(range, address));
    if is_tried {
        // upstream looks at one range only when it takes no address
        let range = of_family.next()?;
        return (!is_inside(range)).then(|| {
            format!("the provided IP ({asked}) is not in the valid range. The range of valid IPs is {range}")
        });
    }
    if !of_family.any(is_inside) {
        return Some("the provided network does not match the current range".to_owned());
    }
    let is_used = canonical(asked).is_some_and(|asked| is_used(&asked));
    is_used.then(|| "provided IP is already allocated".to_owned())
}

/// How many of its cluster IPs a changed service keeps; what it asks for beyond is to be had first.
fn kept_addresses(service: &Value, old: &Value) -> usize {
    let families = |service: &Value| meta::elements(service, "/spec/ipFamilies").len();
    let has_address = meta::text(old, "/spec/clusterIPs/0") != "None";
    match families::kind(old) {
        // who led outside had none
        "ExternalName" => 0,
        _ if has_address && (families(old), families(service)) == (1, 2) => 1,
        // others keep theirs, which is a matter of validation
        _ => usize::MAX,
    }
}

/// Refuses cluster IPs that a service asks for beyond those it has, and may not have.
fn check_addresses(
    service: &Value,
    old: Option<&Value>,
    why_not: impl Fn(&str) -> Option<String>,
) -> Result<(), ApiError> {
    let kept = old.map_or(0, |old| kept_addresses(service, old));
    let asked = addresses_of(service);
    // what is no address is a matter of validation, too
    let is_address = |address: &&String| address.parse::<IpAddr>().is_ok();
    for address in asked.iter().skip(kept).filter(is_address) {
        if let Some(why) = why_not(address) {
            let at = Path::new("spec").child("clusterIPs");
            let error = Error::invalid(&at, json!(asked), format!("failed to allocate IP {address}: {why}"));
            return Err(ApiError::invalid("", "Service", meta::name(service), &[error]));
        }
    }
    Ok(())
}

/// The services beside this one.
fn others_of(context: &Context<'_>, service: &Value) -> Vec<Arc<Value>> {
    let own_uid = meta::text(service, "/metadata/uid");
    let mut services = context.lister.list("", "services", None);
    services.retain(|other| own_uid.is_empty() || meta::text(other, "/metadata/uid") != own_uid);
    services
}

/// All ports of nodes that a service takes.
fn node_ports_of(service: &Value) -> Vec<i64> {
    let health = service.at("/spec/healthCheckNodePort").and_then(Value::as_i64);
    named_node_ports(service).chain(health).collect()
}

/// The ports of nodes that a service's ports name.
fn named_node_ports(service: &Value) -> impl Iterator<Item = i64> {
    let ports = meta::elements(service, "/spec/ports").iter();
    ports.filter_map(|port| number(port, "nodePort"))
}

fn lacks_node_ports(service: &Value) -> bool {
    let ports = service.at("/spec/ports").and_then(Value::as_array);
    ports.into_iter().flatten().any(|port| {
        let number = port.get("nodePort").and_then(Value::as_i64);
        number.is_none_or(|number| number <= 0)
    })
}

/// An address of a range that nobody has, if there is one.
fn free_address(context: &Context<'_>, range: &IpNet, used: &Used<'_>) -> Option<String> {
    let size = match range {
        IpNet::V4(range) => 1u128 << (32 - range.prefix_len()),
        IpNet::V6(range) => 1u128 << (128 - range.prefix_len()).min(64),
    };
    // neither the network's address nor, of IPv4, the broadcast's
    let hosts = size.saturating_sub(if range.addr().is_ipv4() { 2 } else { 1 });
    offsets(hosts, by_hand(size, 16, 256), context.chance).find_map(|offset| {
        let address = beyond(range.network(), offset + 1).to_string();
        let is_free = !used.contains(&address) && context.lister.reserve(&address, context.now);
        is_free.then_some(address)
    })
}

/// The address so many after another one.
fn beyond(base: IpAddr, offset: u128) -> IpAddr {
    match base {
        IpAddr::V4(base) => {
            let offset = u32::try_from(offset).unwrap_or(u32::MAX);
            IpAddr::V4(Ipv4Addr::from(u32::from(base).wrapping_add(offset)))
        }
        IpAddr::V6(base) => IpAddr::V6(Ipv6Addr::from(u128::from(base).wrapping_add(offset))),
    }
}

/// How many of the first of `size` addresses or ports are left to those who ask for one, as long as there are others:
/// <https://kubernetes.io/docs/concepts/services-networking/cluster-ip-allocation/>.
fn by_hand(size: u128, share: u128, most: u128) -> u128 {
    match size {
        ..=16 => 0,
        size => (size / share).clamp(16, most),
    }
}

/// All numbers below `size`, from a random one on; those below `by_hand` come last.
fn offsets(size: u128, by_hand: u128, chance: u64) -> impl Iterator<Item = u128> {
    let chance = u128::from(chance);
    let from = |start: u128, end: u128| {
        let length = end.saturating_sub(start);
        let first = chance.checked_rem(length).unwrap_or_default();
        (0..length).map(move |number| start + (first + number) % length)
    };
    from(by_hand, size).chain(from(0, by_hand))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_number_comes_once_and_those_left_to_others_last(size in 0u128..600, chance: u64) {
            let left = by_hand(size, 16, 256);
            let all: Vec<u128> = offsets(size, left, chance).collect();
            let (first, last) = all.split_at(usize::try_from(size - left).unwrap());
            prop_assert!(first.iter().all(|number| *number >= left));
            prop_assert!(last.iter().all(|number| *number < left));
            let sorted: BTreeSet<u128> = all.iter().copied().collect();
            prop_assert!(sorted.into_iter().eq(0..size));
        }
    }

    #[test]
    fn second_addresses_are_to_be_had() {
        let service = |kind: &str, addresses: &[&str], families: &[&str]| {
            json!({
                "metadata": {"name": "s"},
                "spec": {"type": kind, "clusterIPs": addresses, "ipFamilies": families},
            })
        };
        let both = service("ClusterIP", &["10.0.0.1", "fd00::1"], &["IPv4", "IPv6"]);
        for (old, expected) in [
            (None, vec!["10.0.0.1", "fd00::1"]),
            (Some(service("ExternalName", &[], &[])), vec!["10.0.0.1", "fd00::1"]),
            (Some(service("ClusterIP", &["10.0.0.1"], &["IPv4"])), vec!["fd00::1"]),
            (Some(service("ClusterIP", &["None"], &["IPv4"])), vec![]),
            (Some(both.clone()), vec![]),
        ] {
            let looked_at = std::cell::RefCell::new(Vec::new());
            let look = |address: &str| {
                looked_at.borrow_mut().push(address.to_owned());
                None
            };
            check_addresses(&both, old.as_ref(), look).unwrap();
            assert_eq!(looked_at.into_inner(), expected, "{old:?}");
        }
        let old = service("ClusterIP", &["10.0.0.1"], &["IPv4"]);
        let refused = check_addresses(&both, Some(&old), |_| Some("no".to_owned())).unwrap_err();
        assert_eq!(
            refused.message(),
            "Service \"s\" is invalid: spec.clusterIPs: Invalid value: [\"10.0.0.1\",\"fd00::1\"]: failed to allocate IP fd00::1: no"
        );
    }

    #[test]
    fn ip_addresses_have_the_one_way_in_which_an_address_is_written() {
        let service =
            json!({"metadata": {"namespace": "n", "name": "s"}, "spec": {"clusterIPs": ["fd00:0::0:1a", "None"]}});
        let made = ip_addresses(&service);
        let names: Vec<&str> = made.iter().map(|address| meta::name(&address.object)).collect();
        assert_eq!(names, ["fd00::1a"]);
    }

    #[test]
    fn as_many_are_left_to_those_who_ask_as_upstream_leaves() {
        for (size, share, most, expected) in [
            (16, 16, 256, 0),
            (32, 16, 256, 16),
            (1024, 16, 256, 64),
            (1 << 20, 16, 256, 256),
            (2768, 32, 128, 86),
        ] {
            assert_eq!(by_hand(size, share, most), expected, "{size}");
        }
    }
}
