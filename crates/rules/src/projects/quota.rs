//! The ResourceQuota of a project's namespace: what a configuration makes of it [GCM-4], and how it grows when a shoot comes to need more [GCM-5].

use std::collections::BTreeMap;

use gardener_apimachinery::quantity::Amount;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// Limits by resource.
pub type Limits = BTreeMap<String, Quantity>;

/// The limits after a configuration: exactly its resources, but with the values that are there already.
pub fn limits(configured: &Limits, known: &Limits) -> Limits {
    let keep = |(resource, amount): (&String, &Quantity)| {
        let amount = known.get(resource).unwrap_or(amount);
        (resource.clone(), amount.clone())
    };
    configured.iter().map(keep).collect()
}

/// Something of which there are some objects for each shoot.
struct PerShoot {
    annotation: &'static str,
    resource: &'static str,
    number: i64,
}

/// What Gardener puts into a project's namespace for each shoot.
const PER_SHOOT: [PerShoot; 2] = [
    PerShoot {
        annotation: "quota.gardener.cloud/configmaps-per-shoot",
        resource: "count/configmaps",
        // ca-cluster, ca-kubelet
        number: 2,
    },
    PerShoot {
        annotation: "quota.gardener.cloud/secrets-per-shoot",
        resource: "count/secrets",
        // ca-cluster, ssh-keypair, ssh-keypair.old, monitoring
        number: 4,
    },
];
const SHOOTS: &str = "count/shoots.core.gardener.cloud";

/// How many shoots a quota allows; none if it does not say.
pub fn allowed_shoots(limits: &Limits) -> Option<i64> {
    limits.get(SHOOTS).map(value)
}

fn value(amount: &Quantity) -> i64 {
    // what the API server took is a quantity
    amount.0.parse::<Amount>().map(Amount::value).unwrap_or_default()
}

/// Lets a quota grow, so that it has room for what `shoots` shoots need. The annotations tell for which number of objects per shoot it has been sized.
///
/// # Errors
/// An annotation that is no number.
pub fn grow(limits: &mut Limits, annotations: &mut BTreeMap<String, String>, shoots: i64) -> Result<(), String> {
    for own in &PER_SHOOT {
        let sized = annotations.get(own.annotation);
        let sized = sized
            .map(|text| text.parse::<i64>().map_err(|_| text.clone()))
            .transpose();
        let sized = sized.map_err(|text| {
            format!(
                "failed converting resource quota annotation {:?} to int: {text:?} is no number",
                own.annotation
            )
        })?;
        let current = limits.get(own.resource).map(value);
        let wanted = match (sized, current) {
            (None, None) => continue,
            // nobody knows what it was sized for: enough is enough
            (None, Some(current)) => current.max(own.number.saturating_mul(shoots)),
            (Some(sized), _) if sized == own.number => continue,
            (Some(sized), current) => {
                let more = own.number.saturating_sub(sized).max(0).saturating_mul(shoots);
                current.unwrap_or_default().saturating_add(more)
            }
        };
        if current.unwrap_or_default() != wanted {
            limits.insert(own.resource.to_owned(), Quantity(Amount::units(wanted).to_string()));
        }
        annotations.insert(own.annotation.to_owned(), own.number.to_string());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Limits {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| ((*key).to_owned(), Quantity((*value).to_owned())))
            .collect()
    }

    #[test]
    fn gcm_4_values_stay_and_resources_are_the_configurations() {
        let configured = of(&[("count/secrets", "400"), (SHOOTS, "100")]);
        let known = of(&[("count/secrets", "500"), ("count/pods", "1")]);
        assert_eq!(
            limits(&configured, &known),
            of(&[("count/secrets", "500"), (SHOOTS, "100")])
        );
        assert_eq!(limits(&configured, &Limits::new()), configured);
    }

    #[test]
    fn gcm_5_quotas_grow_by_what_shoots_need_more() {
        const MAPS: &str = "quota.gardener.cloud/configmaps-per-shoot";
        const SECRETS: &str = "quota.gardener.cloud/secrets-per-shoot";
        type Pairs = &'static [(&'static str, &'static str)];
        let cases: [(Pairs, Pairs, Pairs, Pairs); 6] = [
            // nothing is told: only what is too small grows
            (
                &[("count/secrets", "10"), ("count/configmaps", "1k")],
                &[],
                &[("count/secrets", "40"), ("count/configmaps", "1k")],
                &[(MAPS, "2"), (SECRETS, "4")],
            ),
            // what is not limited is not told
            (
                &[("count/secrets", "400")],
                &[],
                &[("count/secrets", "400")],
                &[(SECRETS, "4")],
            ),
            // it has been sized for fewer
            (
                &[("count/secrets", "100"), ("count/configmaps", "10")],
                &[(MAPS, "2"), (SECRETS, "3")],
                &[("count/secrets", "110"), ("count/configmaps", "10")],
                &[(MAPS, "2"), (SECRETS, "4")],
            ),
            // it has been sized for more: it stays
            (
                &[("count/secrets", "100")],
                &[(SECRETS, "7")],
                &[("count/secrets", "100")],
                &[(SECRETS, "4")],
            ),
            // the limit went, its annotation stayed
            (
                &[("count/pods", "1")],
                &[(SECRETS, "3")],
                &[("count/pods", "1"), ("count/secrets", "10")],
                &[(SECRETS, "4")],
            ),
            (&[("count/pods", "1")], &[], &[("count/pods", "1")], &[]),
        ];
        for (before, told, after, tells) in cases {
            let text = |pairs: Pairs| -> BTreeMap<String, String> {
                pairs
                    .iter()
                    .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                    .collect()
            };
            let (mut limits, mut annotations) = (of(before), text(told));
            grow(&mut limits, &mut annotations, 10).unwrap();
            assert_eq!(
                (&limits, &annotations),
                (&of(after), &text(tells)),
                "{before:?} {told:?}"
            );
            let once = (limits.clone(), annotations.clone());
            grow(&mut limits, &mut annotations, 10).unwrap();
            assert_eq!((limits, annotations), once, "twice is once");
        }
        let mut wrong = BTreeMap::from([(SECRETS.to_owned(), "many".to_owned())]);
        let error = grow(&mut of(&[("count/secrets", "1")]), &mut wrong, 1).unwrap_err();
        assert!(
            error.starts_with("failed converting resource quota annotation"),
            "{error}"
        );
        assert_eq!(allowed_shoots(&of(&[(SHOOTS, "1k")])), Some(1000));
        assert_eq!(allowed_shoots(&of(&[])), None);
    }
}
