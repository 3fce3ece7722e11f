# dormouse with what most servers are started by: Node.js (npx) and uv (uvx). Mount a config at /config:
#   docker run -i --rm -v "$PWD/dormouse.json:/config/dormouse.json:ro" ghcr.io/dormouse-mcp/dormouse
#   docker run -p 8080:8080 -v … ghcr.io/dormouse-mcp/dormouse --http 0.0.0.0:8080
FROM rust:1.95-slim-bookworm AS build
WORKDIR /source
COPY . .
# Without git, the time of the commit is unknown.
RUN SOURCE_DATE_EPOCH=0 scripts/build && cp target/*/release/dormouse .

FROM ghcr.io/astral-sh/uv:0.9 AS uv

FROM node:22-bookworm-slim
# tini takes care of what servers leave behind: the first process of a container inherits it.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates git python3 tini \
    && rm -rf /var/lib/apt/lists/*
COPY --from=uv /uv /uvx /usr/local/bin/
COPY --from=build /source/dormouse /usr/local/bin/dormouse
LABEL org.opencontainers.image.source="https://github.com/dormouse-mcp/dormouse" \
      org.opencontainers.image.licenses="Apache-2.0" \
      io.modelcontextprotocol.server.name="io.github.dormouse-mcp/dormouse"
# A container serves one host, or hosts over HTTP.
ENV DORMOUSE_CONFIG=/config/dormouse.json DORMOUSE_DAEMON=0
USER node
WORKDIR /home/node
EXPOSE 8080
ENTRYPOINT ["tini", "--", "dormouse"]
