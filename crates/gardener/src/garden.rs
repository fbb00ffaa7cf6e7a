//! What commands that ask a garden share: the client, where they may take manifests in its place, and how they print tables.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use gardener_forecast::Inventory;
use kube::Client;

/// A client of the garden: by this kubeconfig, else by the one that `gardener up` wrote, else by `KUBECONFIG`.
pub async fn client(kubeconfig: Option<&Path>) -> anyhow::Result<Client> {
    let written = crate::up::default_kubeconfig();
    let path = kubeconfig
        .map(Path::to_owned)
        .or_else(|| Some(written).filter(|path| path.exists()));
    let config = match path {
        Some(path) => {
            let config = kube::config::Kubeconfig::read_from(&path)
                .with_context(|| format!("the garden's kubeconfig {} cannot be read", path.display()))?;
            kube::Config::from_custom_kubeconfig(config, &kube::config::KubeConfigOptions::default()).await?
        }
        None => kube::Config::infer()
            .await
            .context("no kubeconfig of a garden: start one with `gardener up`, or give --kubeconfig")?,
    };
    Ok(Client::try_from(config)?)
}

/// Where cloud profiles and shoots are read.
#[derive(Args)]
pub struct Source {
    /// Kubeconfig of the garden. Default: the one that `gardener up` wrote, else `KUBECONFIG`.
    #[arg(long, conflicts_with = "filename")]
    kubeconfig: Option<PathBuf>,
    /// Look at the shoots of this namespace only.
    #[arg(long, short, conflicts_with = "filename")]
    namespace: Option<String>,
    /// Read manifests instead of a garden: a file or a folder of them; may be repeated.
    #[arg(long, short, value_name = "PATH")]
    filename: Vec<PathBuf>,
}

impl Source {
    /// Reads it. Nothing is written to it.
    pub async fn read(&self) -> anyhow::Result<Inventory> {
        if !self.filename.is_empty() {
            return Ok(Inventory::of_manifests(&self.filename)?);
        }
        let client = client(self.kubeconfig.as_deref()).await?;
        Ok(Inventory::of_garden(&client, self.namespace.as_deref()).await?)
    }
}

/// Prints rows under headings, in columns. The last column is as wide as it is.
pub fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = headings.iter().map(|heading| heading.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let cells: Vec<String> = cells
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        format!("{}\n", cells.join("   ").trim_end())
    };
    let mut text = line(&mut headings.iter().copied());
    for row in rows {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let rows = [vec!["long one".into(), "x → y".into()], vec!["s".into(), String::new()]];
        assert_eq!(table(&["A", "B"], &rows), "A          B\nlong one   x → y\ns\n");
    }
}
