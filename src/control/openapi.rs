//! The `OpenAPI` document of the control API.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::route::Route;

/// Builds the `OpenAPI` 3.1 document.
pub(super) fn document<S>(base_path: &str, routes: &[Route<S>]) -> Value
where
    S: Clone + Send + Sync + 'static,
{
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut generator = settings.into_generator();
    let mut paths = json!({});
    for route in routes {
        let path = format!("{base_path}{}", route.path());
        paths[path][route.method()] = route.operation(&mut generator);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "dormouse",
            "summary": "The API of a running dormouse",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": generator.take_definitions(true),
        },
    })
}
