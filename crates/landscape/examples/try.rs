use gardener_apimachinery::{chance::Chance, clock::Clock};
use gardener_apiserver::{Server, Shared, UserInfo, listen, object};
use gardener_landscape::{embedded::EmbeddedKubernetes, identity::Identity, kubeconfig};
use gardener_store::{MemoryStore, Options};
use std::sync::Arc;
#[tokio::main]
async fn main() {
    tracing_subscriber::fmt().init();
    let shared = Shared {
        store: Arc::new(MemoryStore::new(object::stamp, Options::default())),
        clock: Clock::system(),
        chance: Chance::seeded(1),
    };
    let server = Server::new(shared.clone());
    let id = Identity::of(&shared, "seed").await.unwrap();
    EmbeddedKubernetes::load()
        .unwrap()
        .open(&server, "seed", "1.36.0", id.authentication("https://seed"))
        .await
        .unwrap();
    let entrances = listen::Entrances::default();
    entrances.set_fallback(id.entrance(&["localhost"], &["127.0.0.1".parse().unwrap()]).unwrap());
    let admin = id
        .client_certificate(&UserInfo::new("admin", &["system:masters"]), None)
        .unwrap();
    let kc = kubeconfig::kubeconfig(&[kubeconfig::Access {
        name: "seed",
        server: "https://127.0.0.1:7443",
        tls_server_name: None,
        authority: &id.authority.certificate,
        client: &admin,
    }]);
    std::fs::write("/tmp/try/kubeconfig", serde_json::to_string(&kc).unwrap()).unwrap();
    let l = tokio::net::TcpListener::bind("127.0.0.1:7443").await.unwrap();
    listen::listen(l, server, entrances, Default::default()).await;
}
