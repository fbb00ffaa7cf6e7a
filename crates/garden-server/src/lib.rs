//! The garden API as a program of its own, without controllers. In two ways:
//!
//! - in gardener-apiserver's place ([`aggregated`]): Gardener's kinds only, behind a kube-apiserver that proxies to it, knows its callers and says what
//!   they may do; on an etcd as upstream lays it out;
//! - as a whole garden ([`whole`]): Gardener's kinds and those of Kubernetes that a garden needs, with its own authority and roles.
//!
//! Flags, certificates and the way to etcd that API servers share are in `kube-apiserver`; the kinds and their admission in `garden-apiserver`.
#![forbid(unsafe_code)]

mod admission;
pub mod aggregated;
mod bootstrap;
mod garden;
pub mod whole;
