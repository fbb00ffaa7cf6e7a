//! `machine.sapcloud.io/v1alpha1`: one file per kind.

mod machine;
mod machine_class;
mod machine_deployment;
mod machine_set;
mod machine_template;

pub use machine::*;
pub use machine_class::*;
pub use machine_deployment::*;
pub use machine_set::*;
pub use machine_template::*;
