//! OperatingSystemConfigs: purpose, container runtime, units and files.

use std::collections::{BTreeMap, BTreeSet};

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::link::Link;
use gardener_apimachinery::names;

use crate::extensions::v1alpha1::{
    OperatingSystemConfig, OperatingSystemConfigCriConfig, OperatingSystemConfigCriConfigContainerd,
    OperatingSystemConfigCriConfigContainerdRegistry, OperatingSystemConfigFile, OperatingSystemConfigFileContent,
    OperatingSystemConfigSpec, OperatingSystemConfigUnit,
};
use crate::validation::extension_object::{ExtensionObject, required};
use crate::validation::{go_json, immutable, invalid_each, shown};

const PROVISION: &str = "provision";
const PURPOSES: [&str; 2] = [PROVISION, "reconcile"];

impl ExtensionObject for OperatingSystemConfig {
    type Spec = OperatingSystemConfigSpec;
    const NAMESPACED: bool = true;
    const WORDS: &'static str = "operatingsystemconfig";

    fn spec(&self) -> &OperatingSystemConfigSpec {
        &self.spec
    }

    fn validate_content(&self) -> ErrorList {
        let (spec, status) = (&self.spec, &self.status);
        let (in_spec, in_status) = (Path::new("spec"), Path::new("status"));
        let own_files = spec.files.iter().chain(&status.extension_files);
        let paths: BTreeSet<&str> = own_files.map(|file| file.path.as_str()).collect();
        let mut errors = required(&in_spec, &[("purpose", spec.purpose.is_empty())]);
        if !spec.purpose.is_empty() && !PURPOSES.contains(&spec.purpose.as_str()) {
            let at = in_spec.child("purpose");
            errors.push(Error::not_supported(&at, spec.purpose.as_str(), &PURPOSES));
        }
        if let Some(config) = &spec.cri_config {
            errors.extend(cri(config, &spec.purpose, &in_spec.child("criConfig")));
        }
        errors.extend(units(&spec.units, &paths, &in_spec.child("units")));
        errors.extend(files(&spec.files, &in_spec.child("files")));
        errors.extend(units(
            &status.extension_units,
            &paths,
            &in_status.child("extensionUnits"),
        ));
        errors.extend(files(&status.extension_files, &in_status.child("extensionFiles")));
        errors.extend(twice(self));
        errors
    }

    fn validate_changes(new: &OperatingSystemConfigSpec, old: &OperatingSystemConfigSpec, path: &Path) -> ErrorList {
        let mut errors = immutable(&new.r#type, &old.r#type, &path.child("type"));
        errors.extend(immutable(&new.purpose, &old.purpose, &path.child("purpose")));
        errors
    }
}

fn cri(config: &OperatingSystemConfigCriConfig, purpose: &str, path: &Path) -> ErrorList {
    const DRIVERS: [&str; 2] = ["cgroupfs", "systemd"];
    let mut errors = ErrorList::new();
    if let Some(driver) = &config.cgroup_driver
        && !DRIVERS.contains(&driver.as_str())
    {
        errors.push(Error::not_supported(
            &path.child("cgroupDriver"),
            driver.as_str(),
            &DRIVERS,
        ));
    }
    if let Some(containerd) = &config.containerd {
        let at = path.child("containerd");
        if purpose == PROVISION {
            let why = "containerd config is not allowed for OperatingSystemConfig with purpose 'provision'";
            errors.push(Error::forbidden(&at, why));
        } else {
            errors.extend(required(&at, &[("sandboxImage", containerd.sandbox_image.is_empty())]));
            errors.extend(registries(&containerd.registries, &at.child("registries")));
            errors.extend(plugins(containerd, &at.child("plugins")));
        }
    }
    errors
}

fn registries(registries: &[OperatingSystemConfigCriConfigContainerdRegistry], path: &Path) -> ErrorList {
    const FORM: &str = "; desired format: https://host[:port]";
    const SCHEMES: [&str; 2] = ["http", "https"];
    const CAPABILITIES: [&str; 3] = ["push", "pull", "resolve"];
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    let link = |text: &str, at: &Path, errors: &mut ErrorList| match Link::parse(text) {
        Ok(link) => Some(link),
        Err(why) => {
            errors.push(Error::required(at, format!("url must be a valid URL: {why}{FORM}")));
            None
        }
    };
    let host = |link: &Link, at: &Path| {
        let is_missing = link.host().is_empty();
        is_missing.then(|| Error::invalid(at, "", format!("host must be provided{FORM}")))
    };
    for (i, registry) in registries.iter().enumerate() {
        let own = path.index(i);
        let at = own.child("upstream");
        if !seen.insert(&registry.upstream) {
            errors.push(Error::duplicate(&at, registry.upstream.as_str()));
        }
        if registry.upstream != "_default" {
            errors.extend(invalid_each(&at, &registry.upstream, host_and_port(&registry.upstream)));
        }
        if let Some(server) = &registry.server {
            let at = own.child("server");
            if let Some(link) = link(server, &at, &mut errors) {
                if !SCHEMES.contains(&link.scheme()) {
                    errors.push(Error::not_supported(&at, link.scheme(), &SCHEMES));
                }
                errors.extend(host(&link, &at));
            }
        }
        for (j, mirror) in registry.hosts.iter().enumerate() {
            let at = own.child("hosts").index(j);
            if let Some(link) = link(&mirror.url, &at.child("url"), &mut errors) {
                errors.extend(host(&link, &at.child("url")));
            }
            for (k, capability) in mirror.capabilities.iter().enumerate() {
                if !CAPABILITIES.contains(&capability.as_str()) {
                    let at = at.child("capabilities").index(k);
                    errors.push(Error::not_supported(&at, capability.as_str(), &CAPABILITIES));
                }
            }
        }
    }
    errors
}

/// What is wrong with `host[:port]`.
fn host_and_port(text: &str) -> Vec<String> {
    let port = text.rsplit_once(':');
    let port = port.filter(|(_, port)| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
    let Some((host, port)) = port else {
        return names::dns_subdomain(text);
    };
    let is_port = !port.starts_with('0') && port.parse::<u16>().is_ok();
    let wrong = format!("port '{port}' is not valid, valid port must be in the range [1, 65535]");
    let wrong = (!is_port).then_some(wrong);
    wrong.into_iter().chain(names::dns_subdomain(host)).collect()
}

fn plugins(config: &OperatingSystemConfigCriConfigContainerd, path: &Path) -> ErrorList {
    const OPERATIONS: [&str; 2] = ["add", "remove"];
    let mut errors = ErrorList::new();
    for (i, plugin) in config.plugins.iter().enumerate() {
        let own = path.index(i);
        let operation = plugin.op.as_deref().unwrap_or("add");
        if !OPERATIONS.contains(&operation) {
            errors.push(Error::not_supported(&own.child("op"), operation, &OPERATIONS));
        }
        if plugin.path.is_empty() {
            errors.push(Error::required(&own.child("path"), "must provide a path"));
        }
        let at = own.child("values");
        match &plugin.values {
            Some(_) if operation == "remove" => {
                let why = "values must not be specified when 'remove' operation is used";
                errors.push(Error::forbidden(&at, why));
            }
            Some(values) if !values.is_object() && !values.is_null() => {
                let why = "provided values must be given in json format";
                errors.push(Error::invalid(&at, go_json(values), why));
            }
            _ => {}
        }
    }
    errors
}

fn units(units: &[OperatingSystemConfigUnit], paths: &BTreeSet<&str>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (i, unit) in units.iter().enumerate() {
        let own = path.index(i);
        errors.extend(required(&own, &[("name", unit.name.is_empty())]));
        for (j, part) in unit.drop_ins.iter().enumerate() {
            let needed = [("name", part.name.is_empty()), ("content", part.content.is_empty())];
            errors.extend(required(&own.child("dropIns").index(j), &needed));
        }
        for (j, file) in unit.file_paths.iter().enumerate() {
            if !paths.contains(file.as_str()) {
                let why = "'filePath' requires a matching 'path' in 'spec.files'";
                errors.push(Error::invalid(&own.child("filePaths").index(j), file.as_str(), why));
            }
        }
    }
    errors
}

fn files(files: &[OperatingSystemConfigFile], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (i, file) in files.iter().enumerate() {
        let own = path.index(i);
        errors.extend(required(&own, &[("path", file.path.is_empty())]));
        errors.extend(content(&file.content, &own.child("content")));
        if let Some(host) = &file.host_name {
            errors.extend(invalid_each(&own.child("hostName"), host, names::dns_subdomain(host)));
        }
    }
    errors
}

/// Where the content of a file comes from: one place.
fn content(content: &OperatingSystemConfigFileContent, path: &Path) -> ErrorList {
    const ENCODINGS: [&str; 2] = ["", "b64"];
    match (&content.secret_ref, &content.inline, &content.image_ref) {
        (None, None, None) => {
            let why = "either 'secretRef', 'inline' or 'imageRef' must be provided";
            vec![Error::required(path, why)]
        }
        (Some(secret), None, None) => {
            let needed = [
                ("name", secret.name.is_empty()),
                ("dataKey", secret.data_key.is_empty()),
            ];
            required(&path.child("secretRef"), &needed)
        }
        (None, Some(inline), None) => {
            let at = path.child("inline");
            let mut errors = ErrorList::new();
            if !ENCODINGS.contains(&inline.encoding.as_str()) {
                let encoding = inline.encoding.as_str();
                errors.push(Error::not_supported(&at.child("encoding"), encoding, &ENCODINGS));
            }
            errors.extend(required(&at, &[("data", inline.data.is_empty())]));
            errors
        }
        (None, None, Some(image)) => {
            let needed = [
                ("image", image.image.is_empty()),
                ("filePathInImage", image.file_path_in_image.is_empty()),
            ];
            required(&path.child("imageRef"), &needed)
        }
        _ => {
            let why = "either 'secretRef', 'inline' or 'imageRef' must be provided, not multiple at the same time";
            vec![Error::invalid(path, shown(content), why)]
        }
    }
}

/// Files that stand twice: a path has either one file for all hosts, or one for each of some hosts.
fn twice(config: &OperatingSystemConfig) -> ErrorList {
    let mut first: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    let mut errors = ErrorList::new();
    let lists = [
        (&config.spec.files, Path::new("spec").child("files")),
        (
            &config.status.extension_files,
            Path::new("status").child("extensionFiles"),
        ),
    ];
    for (files, path) in &lists {
        for (i, file) in files.iter().enumerate().filter(|(_, file)| !file.path.is_empty()) {
            let host = file.host_name.as_deref();
            match first.get(file.path.as_str()) {
                None => {
                    first.insert(&file.path, host);
                }
                // only the host of the first file counts, as upstream has it
                Some(other) if host.is_none() || other.is_none() || *other == host => {
                    errors.push(Error::duplicate(&path.index(i).child("path"), file.path.as_str()));
                }
                Some(_) => {}
            }
        }
    }
    errors
}
