//! How many replicas the components of a control plane have [CP-60..63].

/// What is known of a component and its cluster when replicas are decided.
#[derive(Clone, Copy, Debug, Default)]
pub struct Situation {
    /// The operation is Create or Restore.
    pub is_first: bool,
    /// The operation is Restore.
    pub is_restore: bool,
    /// The operation is Delete.
    pub is_delete: bool,
    /// `spec.hibernation.enabled`.
    pub hibernation_enabled: bool,
    /// `status.hibernated`.
    pub hibernated: bool,
    /// The desired replicas of the live kube-apiserver; none if there is none.
    pub api_server: Option<i32>,
}

/// What is live of a component.
#[derive(Clone, Copy, Debug, Default)]
pub struct Live {
    /// Desired replicas of the live object; 0 if there is none.
    pub replicas: i32,
    /// It carries `dependency-watchdog.gardener.cloud/meltdown-protection-active`.
    pub protected: bool,
}

/// The replicas of a controller, `default` when it is to run [CP-60].
pub fn controller(situation: &Situation, live: Live, default: i32) -> i32 {
    let going_down_first = situation.is_first && situation.hibernation_enabled;
    let stays_down = !situation.is_first && situation.hibernation_enabled && situation.hibernated;
    if going_down_first || stays_down {
        return live.replicas;
    }
    let awake = !situation.hibernation_enabled && !situation.hibernated;
    if live.protected && !situation.is_first && awake {
        return live.replicas;
    }
    if situation.api_server == Some(0) {
        return 0;
    }
    default
}

/// The replicas of kube-apiserver; `minimum` is its autoscaler's [CP-61].
pub fn kube_api_server(situation: &Situation, minimum: i32) -> i32 {
    match situation.api_server {
        None if !situation.hibernation_enabled => minimum,
        Some(live) if live > 0 => live,
        _ if situation.hibernation_enabled => 0,
        _ => 1,
    }
}

/// The replicas of machine-controller-manager; `machines` says whether a MachineDeployment still has some [CP-62].
pub fn machine_controller_manager(situation: &Situation, live: Live, machines: bool, is_create: bool) -> i32 {
    if situation.is_delete {
        return 1;
    }
    if machines {
        return controller(situation, live, 1);
    }
    let (wanted, is) = (situation.hibernation_enabled, situation.hibernated);
    if wanted && (is || is_create) {
        return 0;
    }
    if wanted != is {
        return 1;
    }
    if situation.is_restore { 0 } else { 1 }
}

/// The least kube-apiserver replicas of the autoscaler [CP-40], [CP-63].
pub fn kube_api_server_minimum(highly_available: bool, scale_down_disabled: bool) -> i32 {
    match (scale_down_disabled, highly_available) {
        (true, _) => 4,
        (false, true) => 3,
        (false, false) => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cp_61_and_cp_c11_kube_api_server() {
        // hibernation enabled, live, expected
        let table = [
            (false, None, 2),
            (false, Some(5), 5),
            (true, Some(3), 3),
            (true, Some(0), 0),
            (true, None, 0),
            (false, Some(0), 1),
        ];
        for (hibernation_enabled, api_server, expected) in table {
            let situation = Situation {
                hibernation_enabled,
                api_server,
                ..Situation::default()
            };
            assert_eq!(kube_api_server(&situation, 2), expected, "{situation:?}");
        }
    }

    #[test]
    fn cp_60_and_cp_c12_controllers() {
        let up = Situation {
            api_server: Some(2),
            ..Situation::default()
        };
        let live = |replicas, protected| Live { replicas, protected };
        let table = [
            ("awake", up, live(0, false), 2),
            ("scaled down by the watchdog", up, live(0, true), 0),
            (
                "watchdog does not hold a waking cluster",
                Situation { hibernated: true, ..up },
                live(0, true),
                2,
            ),
            (
                "created hibernated",
                Situation {
                    is_first: true,
                    hibernation_enabled: true,
                    ..up
                },
                live(0, false),
                0,
            ),
            (
                "hibernated",
                Situation {
                    hibernation_enabled: true,
                    hibernated: true,
                    ..up
                },
                live(0, false),
                0,
            ),
            (
                "going down",
                Situation {
                    hibernation_enabled: true,
                    ..up
                },
                live(1, false),
                2,
            ),
            (
                "no API server",
                Situation {
                    api_server: Some(0),
                    ..up
                },
                live(1, false),
                0,
            ),
        ];
        for (case, situation, live, expected) in table {
            assert_eq!(controller(&situation, live, 2), expected, "{case}");
        }
    }

    #[test]
    fn cp_62_machine_controller_manager() {
        let base = Situation {
            api_server: Some(2),
            ..Situation::default()
        };
        let with = |wanted, is| Situation {
            hibernation_enabled: wanted,
            hibernated: is,
            ..base
        };
        let table = [
            (
                Situation {
                    is_delete: true,
                    ..with(true, true)
                },
                false,
                false,
                1,
            ),
            (with(true, true), false, false, 0),
            (with(true, false), false, true, 0),
            (with(true, false), false, false, 1),
            (with(false, true), false, false, 1),
            (
                Situation {
                    is_restore: true,
                    is_first: true,
                    ..base
                },
                false,
                false,
                0,
            ),
            (base, false, false, 1),
            (base, true, false, 1),
        ];
        for (situation, machines, is_create, expected) in table {
            let found = machine_controller_manager(&situation, Live::default(), machines, is_create);
            assert_eq!(found, expected, "{situation:?} {machines}");
        }
    }
}
