//! Which paths built-in resources have, and what can be done there. Custom resources are served by a handler that says more of what it does not do
//! (`handle`); how a path is read is in `request`.

use crate::connect;
use crate::definition::Definition;
use crate::request::ResourcePath;

/// Whether there is the path to a resource, or to its subresource.
pub(crate) fn is_there(definition: &Definition, path: &ResourcePath) -> bool {
    let version = definition.version(&path.version);
    let name = path.subresource.as_str();
    match name {
        "" => !path.legacy_watch || definition.verbs.contains(&"watch"),
        "status" => version.is_some_and(|own| own.status),
        "scale" if version.is_some_and(|own| own.scale.is_some()) => true,
        _ => {
            definition.subresources.contains_key(name)
                || definition.strategy.views().contains(&name)
                || connect::find(definition, name).is_some()
        }
    }
}

/// Whether a resource, or its subresource, can be patched.
pub(crate) fn can_be_patched(definition: &Definition, subresource: &str) -> bool {
    let own = definition.subresources.get(subresource);
    connect::find(definition, subresource).is_none() && own.is_none_or(|own| own.verbs().contains(&"patch"))
}

/// Whether a verb is one of collections where an object is named, or the other way round.
pub(crate) fn is_misplaced(verb: &str, name: &str) -> bool {
    match verb {
        "create" => !name.is_empty(),
        "update" | "patch" => name.is_empty(),
        _ => false,
    }
}
