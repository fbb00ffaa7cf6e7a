//! The API machinery: one HTTP service that serves the Kubernetes API of many logical clusters from one store.
//!
//! A request comes in by TLS or from inside the process ([`server`]), is authenticated ([`authn`]) and authorized ([`authz`], [`rbac`]), and
//! runs one of the verbs ([`registry`], [`watch`]) on a resource that a [`definition::Definition`] describes. Kubernetes' own kinds are in
//! [`kubernetes`], custom ones come from CRDs ([`crd`]). No kind of Gardener is known here, and no controller lives here.
#![forbid(unsafe_code)]

pub mod accept;
pub mod aggregation;
pub mod audit;
pub mod authn;
pub mod authz;
mod bindings;
mod blocking;
mod body;
pub mod cluster;
mod component_status;
mod config_file;
mod connect;
mod copies;
pub mod cors;
pub mod crd;
pub mod decode;
pub mod definition;
pub mod delegation;
mod discovery;
mod draft;
pub mod egress;
pub mod elsewhere;
pub mod encryption;
mod flow_control;
mod flow_schemas;
mod followed;
mod go_text;
pub mod handle;
mod health;
mod impersonation;
mod in_flight;
mod intercept;
mod json_path;
pub mod kubernetes;
pub mod legacy_tokens;
mod list;
pub mod listen;
mod media_type;
pub mod meta;
pub mod metrics;
pub mod object;
mod oidc;
pub mod openapi;
mod options;
pub mod policies;
mod posted;
pub mod protobuf;
mod question;
pub mod rbac;
pub mod registry;
pub mod request;
pub mod respond;
mod retry;
mod reviews;
mod route;
mod scale;
pub mod selectable;
pub mod server;
mod subresource;
pub mod table;
#[cfg(test)]
mod testing;
mod time_limit;
mod tls;
pub mod tokens;
mod trial;
mod trust;
mod unread;
mod untracked;
pub mod user;
mod varint;
pub mod watch;
mod watch_end;
pub mod webhooks;
mod yaml;
mod zpages;

pub use cluster::{ClusterConfig, LogicalCluster, ResourceSet, Shared};
pub use component_status::Components;
pub use copies::CopyError;
pub use flow_control::Seats;
pub use in_flight::InFlight;
pub use server::{ALL_CLUSTERS, Server};
pub use user::UserInfo;
