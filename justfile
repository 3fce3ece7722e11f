# Daily commands.

# All tests and checks, as CI runs them.
check:
    scripts/check

# The tests alone.
test *arguments:
    cargo nextest run {{arguments}}

lint:
    cargo fmt --check
    cargo clippy --all-targets -- -D warnings

# The table of docs/benchmarks.md; with a word, only the rows of that name.
bench *rows:
    cargo bench --bench table -- {{rows}}

# Each fuzz target for N minutes (default 1), on the nightly toolchain.
fuzz *arguments:
    scripts/fuzz {{arguments}}

# How well requests find their tools (docs/reference/search.md); with `--failures`, which do not.
eval-search *arguments:
    scripts/eval-search {{arguments}}

# Many hosts and misbehaving servers at once, for N minutes; fails on anything lost or leaked.
soak *arguments:
    scripts/soak {{arguments}}

# Write docs/config.schema.json and the tables of docs/reference/config.md again.
schema:
    scripts/schema

# Connect real apps, and take their servers over and back (about 1 GB from npm).
apps:
    scripts/apps

# Licences, advisories and spelling; needs cargo-deny and typos. With `--offline`, no advisories.
audit *arguments:
    scripts/audit {{arguments}}

# Tests under faults of the machine: full disks, no processes, lost packets and the like. Needs root.
faults:
    scripts/faults

# Build twice in different directories, and compare the bytes.
reproducible *arguments:
    scripts/reproducible {{arguments}}

demo:
    cargo run --release -- demo
