//! `gardener kubeconfig`: asks a running garden for a way into a shoot or a seed.

use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use base64::Engine;
use clap::{Args, Subcommand};
use gardener_apimachinery::pointer::Pointed;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;

use crate::garden::client;

/// Where a kubeconfig leads.
#[derive(Subcommand)]
pub enum Target {
    /// A shoot: `gardener kubeconfig shoot <namespace>/<name>`.
    Shoot(Shoot),
    /// A seed: `gardener kubeconfig seed <name>`.
    Seed(Seed),
}

#[derive(Args)]
struct Common {
    /// Kubeconfig of the garden. Default: the one that `gardener up` wrote, else `KUBECONFIG`.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Write to this file instead of standard output.
    #[arg(long, short)]
    output: Option<PathBuf>,
}

/// Arguments of `gardener kubeconfig shoot`.
#[derive(Args)]
pub struct Shoot {
    /// Namespace and name, as in `garden-local/local`.
    shoot: String,
    /// How long the client certificate is valid, in seconds: at least 600.
    #[arg(long, default_value_t = 3600)]
    expiration: u32,
    /// Ask for read access only.
    #[arg(long)]
    viewer: bool,
    #[command(flatten)]
    common: Common,
}

/// Arguments of `gardener kubeconfig seed`.
#[derive(Args)]
pub struct Seed {
    /// Name of the seed.
    seed: String,
    #[command(flatten)]
    common: Common,
}

/// Runs the command.
pub async fn run(target: Target) -> anyhow::Result<()> {
    match target {
        Target::Shoot(arguments) => {
            let (namespace, name) = arguments.shoot.split_once('/').with_context(|| {
                format!(
                    "{:?} names no shoot: expected <namespace>/<name>, e.g. garden-local/local",
                    arguments.shoot
                )
            })?;
            let client = client(arguments.common.kubeconfig.as_deref()).await?;
            let text = of_shoot(&client, namespace, name, arguments.expiration, arguments.viewer).await?;
            write(&arguments.common, &text)
        }
        Target::Seed(arguments) => {
            let client = client(arguments.common.kubeconfig.as_deref()).await?;
            let text = of_seed(&client, &arguments.seed).await?;
            write(&arguments.common, &text)
        }
    }
}

async fn of_shoot(
    client: &Client,
    namespace: &str,
    name: &str,
    expiration: u32,
    viewer: bool,
) -> anyhow::Result<String> {
    let kind = if viewer {
        "ViewerKubeconfigRequest"
    } else {
        "AdminKubeconfigRequest"
    };
    let subresource = if viewer { "viewerkubeconfig" } else { "adminkubeconfig" };
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("core.gardener.cloud", "v1beta1", "Shoot"));
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    let request = json!({"apiVersion": "authentication.gardener.cloud/v1alpha1", "kind": kind, "spec": {"expirationSeconds": expiration}});
    let answer: serde_json::Value = api
        .create_subresource(subresource, name, &PostParams::default(), &request)
        .await
        .with_context(|| format!("the garden gives no kubeconfig for shoot {namespace}/{name}"))?;
    let encoded = answer
        .at("/status/kubeconfig")
        .and_then(serde_json::Value::as_str)
        .context("the garden's answer has no kubeconfig")?;
    decode(encoded)
}

/// The kubeconfig of an embedded seed is kept by `gardener up` in the garden, as a Secret that only administrators read.
async fn of_seed(client: &Client, seed: &str) -> anyhow::Result<String> {
    let api: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(client.clone(), "garden");
    let name = gardener_landscape::seed_kubeconfig_secret(seed);
    let Some(secret) = api.get_opt(&name).await? else {
        bail!("no kubeconfig of seed {seed:?} is known: only seeds of `gardener up` have one (Secret garden/{name})");
    };
    let data = secret.data.unwrap_or_default();
    let bytes = data
        .get("kubeconfig")
        .ok_or_else(|| anyhow!("Secret garden/{name} has no key \"kubeconfig\""))?;
    Ok(String::from_utf8(bytes.0.clone())?)
}

fn decode(encoded: &str) -> anyhow::Result<String> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded)?;
    Ok(String::from_utf8(bytes)?)
}

fn write(common: &Common, text: &str) -> anyhow::Result<()> {
    match &common.output {
        None => print!("{text}"),
        Some(path) => gardener_landscape::kubeconfig::write_private(path, text)?,
    }
    Ok(())
}
